// The page works on what is inlined in it: no network, no library. Text is only ever set as text.
"use strict";
const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const page = JSON.parse($("#page-data").textContent);

const element = (name, props = {}, ...children) => {
  const made = Object.assign(document.createElement(name), props);
  made.append(...children.filter((child) => child !== null));
  return made;
};
const count = (value) => value.toLocaleString("en");
const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)}\u00a0%`;
const short = (value) => String(Number(value.toPrecision(3))).replace("-", "−");
const nameOf = (label) => (label === null ? "–" : page.names[label] ?? String(label));

// Pictures lie in chunks of JSON that are read when one of theirs comes into view.
const chunks = $$("script.pictures");
const unpacked = new Map();
const chunkSize = chunks.length ? JSON.parse(chunks[0].textContent).length : 1;
const pictureOf = (place) => {
  const number = Math.floor(place / chunkSize);
  if (!unpacked.has(number)) unpacked.set(number, JSON.parse(chunks[number].textContent));
  return unpacked.get(number)[place % chunkSize];
};
const showPicture = (box, place, alt) => {
  const address = pictureOf(place);
  if (address === null) {
    box.replaceChildren(element("span", { className: "none", textContent: "no picture" }));
    return;
  }
  const image = element("img", { alt, src: address, decoding: "async", draggable: false });
  // enlarged, a handful of pixels is best left as squares
  image.onload = () => image.classList.toggle("tiny", image.naturalWidth <= 16);
  box.replaceChildren(image);
};
const showThumb = (box) => {
  onSight.unobserve(box);
  showPicture(box, Number(box.dataset.place), box.dataset.alt);
};
const onSight = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) if (isIntersecting) showThumb(target);
  },
  { rootMargin: "600px" },
);
const pictureBox = (place, alt) => {
  const box = element("span", { className: "thumb" });
  Object.assign(box.dataset, { place, alt });
  onSight.observe(box);
  return box;
};

// On paper everything is in sight.
addEventListener("beforeprint", () => {
  $$(".thumb[data-place]:empty").forEach(showThumb);
  $$(".thumb img").forEach((image) => (image.decoding = "sync"));
});

// Tables are sorted by the column whose heading is pressed.
for (const table of $$("table.sortable")) {
  const heads = $$("thead tr > *", table);
  for (const head of heads.filter((each) => each.tagName === "TH")) {
    $("button", head).onclick = () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => Number(row.children[heads.indexOf(head)].dataset.value);
      const rows = $$("tbody tr", table).sort((a, b) => (down ? value(b) - value(a) : value(a) - value(b)));
      $("tbody", table).append(...rows);
    };
  }
}
