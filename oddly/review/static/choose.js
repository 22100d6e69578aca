// Another class: type to search.
"use strict";

const FOUND = 50;  // classes listed while searching
const NONE = "No such class. If your data lacks a class, remove this image with R or skip it with N;"
  + " then add the class to your data and run oddly clean again.";

let classes = null;
let choosing = null;  // the suspect the dialog is about
let chosen = 0;  // place in the list

async function openChoice(target) {
  choosing = target;
  await alone(async () => { classes ??= await ask("/api/classes"); });
  if (!classes) return;
  $("search").value = "";
  search();
  $("choose").showModal();
}

function search() {
  const text = $("search").value.trim().toLowerCase();
  const matches = classes.filter((name) => name.toLowerCase().includes(text));
  if (text) matches.sort((a, b) => b.toLowerCase().startsWith(text) - a.toLowerCase().startsWith(text));
  $("found").replaceChildren(...matches.slice(0, FOUND).map((name, place) => {
    const item = document.createElement("li");
    item.id = `class-${place}`;
    item.setAttribute("role", "option");
    item.textContent = name;
    item.addEventListener("click", () => take(name));
    return item;
  }));
  $("found-count").textContent = !matches.length ? NONE
    : matches.length > FOUND ? `${FOUND} of ${number(matches.length)} shown.` : "";
  select(0);
}

function select(place) {
  const items = [...$("found").children];
  chosen = Math.max(0, Math.min(place, items.length - 1));
  items.forEach((item, i) => item.setAttribute("aria-selected", i === chosen));
  items[chosen]?.scrollIntoView({ block: "nearest" });
  if (items.length) $("search").setAttribute("aria-activedescendant", `class-${chosen}`);
  else $("search").removeAttribute("aria-activedescendant");
}

function take(name) {
  $("choose").close();
  decide(choosing, name === choosing.given ? "keep" : "relabel", name);
}

$("search").addEventListener("input", search);
$("search").addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) { event.preventDefault(); select(chosen + step); }
  if (event.key === "Enter") { event.preventDefault(); const item = $("found").children[chosen]; if (item) take(item.textContent); }
});
