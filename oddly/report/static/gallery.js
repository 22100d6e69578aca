// The gallery: `order` holds the places that pass the filters, in the order they are shown.
const FIRST = matchMedia("(max-width: 600px)").matches ? 24 : 60; // cards on opening the page
const BATCH = 60; // cards laid out together; fills rows of 2 to 6
const PAIRS = 300; // choices, the most frequent ones
const suspects = page.suspects;
const list = $("#suspect-list");
const controls = Object.fromEntries(
  ["filter-class", "filter-pair", "filter-id", "sort", "clear", "found", "more"].map((id) => [
    id,
    document.getElementById(id),
  ]),
);
let order = suspects.ids.map((_, place) => place);
let shown = 0;
let lowest = -Infinity; // of a dragged threshold
let waiting = 0; // the timer of a gallery that is to follow it

const idLine = (id) =>
  element("bdi", {
    className: "id",
    title: id,
    ariaHidden: "true", // the picture's text has said it
    textContent: id.split("/").pop() || id,
  });
const card = (place) => {
  const { ids, given, suggested, confidence, words, true: truth } = suspects;
  const agrees = suggested[place] === given[place];
  const sure = confidence[place] === null ? "" : ` ${percent(confidence[place], 0)}`;
  const line = (kind, spoken, text, more = "") =>
    element(
      "span",
      { className: kind },
      element("span", { className: "spoken", textContent: `${spoken}: ` }),
      element("bdi", { textContent: text }),
      more,
    );
  const button = element(
    "button",
    { type: "button", className: "open", tabIndex: -1 },
    pictureBox(place, `Image ${ids[place]}.`),
    line("given", "given label", nameOf(given[place])),
    agrees
      ? element("span", { className: "agrees", textContent: `the final network agrees${sure && `,${sure}`}` })
      : line("suggested", "suggested label", nameOf(suggested[place]), sure),
    truth ? line("true", "true label", nameOf(truth[place])) : null,
    element("span", { className: "words", textContent: words[place] }),
    idLine(ids[place]),
  );
  button.dataset.place = place;
  return element("div", { role: "listitem" }, button);
};
const grow = (number) => {
  const end = Math.min(order.length, shown + number);
  for (; shown < end; shown = Math.min(end, shown + BATCH)) {
    const next = order.slice(shown, Math.min(end, shown + BATCH));
    list.append(element("div", { className: "gallery", role: "presentation" }, ...next.map(card)));
  }
  const [batch] = list.children;
  if (batch) list.style.setProperty("--batch", `${(batch.offsetHeight * BATCH) / batch.children.length}px`);
  if (list.firstChild && !$("[tabindex='0']", list)) $("button", list).tabIndex = 0;
  const left = order.length - shown;
  controls.more.hidden = left === 0;
  const [more, all] = $$("button", controls.more);
  more.textContent = `Show ${count(Math.min(left, Number(more.dataset.count)))} more`;
  all.hidden = left <= Number(more.dataset.count);
  all.textContent = `Show all ${count(order.length)}`;
  const kind = page.total ? "suspects" : "images";
  const of = order.length < suspects.ids.length ? ` (of ${count(suspects.ids.length)} listed)` : "";
  controls.found.textContent = order.length
    ? `${count(order.length)} ${kind}${of}, ${count(shown)} shown.`
    : `No ${kind} match.`;
};
const arrange = () => {
  clearTimeout(waiting);
  waiting = 0;
  const pair = controls["filter-pair"].value;
  const wanted = controls["filter-class"].value;
  const text = controls["filter-id"].value.trim().toLowerCase();
  const { ids, given, suggested, confidence, score, anyway } = suspects;
  order = ids
    .map((_, place) => place)
    .filter(
      (i) =>
        (wanted === "" || given[i] === Number(wanted)) &&
        (pair === "" || `${given[i]}>${suggested[i]}` === pair) &&
        (text === "" || ids[i].toLowerCase().includes(text)) &&
        (anyway[i] || score[i] >= lowest),
    );
  const by = {
    rank: (a, b) => a - b,
    "rank-": (a, b) => b - a,
    confidence: (a, b) => (confidence[b] ?? -1) - (confidence[a] ?? -1) || a - b,
    given: (a, b) => given[a] - given[b] || a - b,
    id: (a, b) => ids[a].localeCompare(ids[b], "en", { numeric: true }),
  };
  order.sort(by[controls.sort.value]);
  controls.clear.disabled = !(wanted || pair || text);
  onSight.disconnect();
  list.replaceChildren();
  observeKept();
  shown = 0;
  grow(FIRST);
};
const choose = (given, suggested) => {
  controls["filter-id"].value = "";
  controls["filter-class"].value = suggested === undefined ? given : "";
  controls["filter-pair"].value = suggested === undefined ? "" : `${given}>${suggested}`;
  arrange();
  $("#suspects").scrollIntoView();
  $("button", list)?.focus({ preventScroll: true });
};
const fill = (select, tally, text) => {
  for (const [key, number] of tally) {
    select.append(element("option", { value: key, textContent: `${text(key)} (${count(number)})` }));
  }
};
const tallyOf = (keys) => {
  const tally = new Map();
  for (const key of keys) tally.set(key, (tally.get(key) ?? 0) + 1);
  return [...tally];
};

// Kept images: pictures and labels, nothing to press.
const kept = $("#kept-list");
const observeKept = () => kept && $$(".thumb:empty", kept).forEach((box) => onSight.observe(box));
if (kept) {
  page.kept.ids.forEach((id, i) => {
    const label = element("span", { className: "given" }, element("bdi", { textContent: nameOf(page.kept.given[i]) }));
    kept.append(element("li", {}, pictureBox(suspects.ids.length + i, `Image ${id}.`), label, idLine(id)));
  });
}

// A closer look at one suspect.
const dialog = $("dialog");
let looked = 0; // place in `order`
const look = (at) => {
  looked = Math.max(0, Math.min(order.length - 1, at));
  const i = order[looked];
  showPicture($(".thumb", dialog), i, `Image ${suspects.ids[i]}`);
  $("h2", dialog).replaceChildren(element("bdi", { textContent: suspects.ids[i] }));
  const sure = suspects.confidence[i];
  const agrees = suspects.suggested[i] === suspects.given[i];
  const suggestion = agrees ? "none: the final network agrees with the given label" : nameOf(suspects.suggested[i]);
  const rows = [
    ["Given label", nameOf(suspects.given[i])],
    ["Suggested label", suggestion + (sure === null ? "" : `, ${percent(sure)} sure`)],
    ["True label", suspects.true && nameOf(suspects.true[i])],
    [page.unit === "loss" ? "Loss" : "Score", suspects.score[i] === null ? null : short(suspects.score[i])],
    ["In words", suspects.words[i]],
    ["Position", `${count(looked + 1)} of ${count(order.length)}`],
  ];
  $("dl", dialog).replaceChildren(
    ...rows
      .filter(([, value]) => value !== null)
      .map(([name, value]) =>
        element("div", {}, element("dt", { textContent: name }), element("dd", {}, element("bdi", { textContent: value }))),
      ),
  );
  if (!dialog.open) dialog.showModal();
};
const goTo = (at) => {
  if (at >= shown && shown < order.length) grow(FIRST);
  const buttons = $$("button.open", list);
  const target = buttons[Math.max(0, Math.min(buttons.length - 1, at))];
  if (!target) return;
  buttons.forEach((button) => (button.tabIndex = button === target ? 0 : -1));
  target.focus();
  target.scrollIntoView({ block: "nearest" });
};
const current = () => $$("button.open", list).indexOf(document.activeElement);
const step = (by) => {
  const at = current();
  goTo(at >= 0 ? at + by : Math.max(0, $$("button.open", list).findIndex((b) => b.tabIndex === 0)));
};

if (list) {
  fill(
    controls["filter-class"],
    tallyOf(suspects.given).sort((a, b) => a[0] - b[0]),
    nameOf,
  );
  const pairs = tallyOf(suspects.given.map((label, i) => `${label}>${suspects.suggested[i]}`));
  fill(controls["filter-pair"], pairs.sort((a, b) => b[1] - a[1]).slice(0, PAIRS), (key) => {
    const [given, suggested] = key.split(">");
    const named = (label) => nameOf(label === "null" ? null : Number(label));
    return given === suggested ? `${named(given)}, the final network agrees` : `${named(given)} → ${named(suggested)}`;
  });
  for (const id of ["filter-class", "filter-pair", "sort"]) controls[id].onchange = arrange;
  controls["filter-id"].oninput = arrange;
  controls.clear.onclick = () => choose("");
  controls.more.onclick = ({ target }) => {
    if (!target.dataset.count) return;
    const first = shown;
    grow(target.dataset.count === "all" ? order.length : Number(target.dataset.count));
    goTo(first);
  };
  list.onclick = ({ target }) => {
    const button = target.closest("button.open");
    if (button) look(order.indexOf(Number(button.dataset.place)));
  };
  dialog.onclick = ({ target }) => {
    const by = Number(target.dataset.step);
    if (target === dialog || by === 0) dialog.close();
    else if (by) look(looked + by);
  };
  dialog.onclose = () => goTo(looked);
  for (const button of $$("button[data-given]")) {
    button.onclick = () => choose(button.dataset.given, button.dataset.suggested);
  }
  arrange();
}
