// The review page. Every name goes into the page as text, never as HTML.
"use strict";

const $ = (id) => document.getElementById(id);
const KEYS = { k: "keep", s: "suggestion", c: "choose", r: "remove", n: "skip" };
const WORDS = { keep: "Kept as", suggestion: "Changed to", relabel: "Changed to", remove: "Removed", skip: "Skipped" };
const LARGEST = 14;  // times a small picture is enlarged; beyond that it only blurs
const PAGE = 60;  // cards of the grid
const FOUND = 50;  // classes listed while searching

let card = null;  // the suspect on show
let progress = { total: 0, decided: 0, skipped: 0, undo: null };
let running = null;  // the request under way
let view = "one";
let classes = null;
const mine = [];  // revisions of this tab's own decisions, for undo
const ahead = [];  // pictures fetched before they are needed
const grid = { cards: [], starts: [0], next: null, current: 0 };

// ---- talking to the server

async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  };
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("The server does not answer: your last choice was not saved. Start it again and open the new link.");
  }
  if (response.status === 403) throw new Error("This link is no longer valid. Open the one the terminal shows.");
  const answer = await response.json().catch(() => ({ error: "The server failed; look at the terminal." }));
  if (!response.ok && response.status !== 409) throw new Error(answer.error);
  return answer;
}

// One request at a time. What comes meanwhile is dropped (a key would hit a picture not yet seen),
// but for a change of view, which waits for its turn.
function alone(work, patient = false) {
  if (running && !patient) return running;
  const turn = (running ?? Promise.resolve()).then(async () => {
    notice("");
    try {
      await work();
    } catch (error) {
      notice(error.message);
    }
    if (running === turn) running = null;
  });
  running = turn;
  return turn;
}

function notice(text) {
  $("notice").textContent = text;
  $("notice").hidden = !text;
}

// ---- one suspect

function show(answer) {
  progress = answer.progress;
  showProgress();
  card = answer.card;
  if (!card) return showDone();
  openView("one");
  for (const url of answer.prefetch) {
    const image = new Image();
    image.src = url;
    ahead.push(image);
  }
  ahead.splice(0, ahead.length - 8);
  showCard();
  if (answer.error) notice(`This one was ${answer.error}. What stands is shown.`);
}

function showCard() {
  $("picture").src = card.image;
  $("picture").alt = `Picture ${card.id}`;
  $("rank").textContent = `${number(card.rank + 1)} of ${number(progress.total)}`;
  $("name").textContent = card.id;
  $("given").textContent = card.given;
  $("keep-label").textContent = card.given;
  $("suggestion").hidden = button("suggestion").hidden = !card.suggested;
  $("suggested").textContent = $("suggestion-label").textContent = card.suggested ?? "";
  $("meter").hidden = card.confidence === null;
  $("meter").value = card.confidence ?? 0;
  $("confidence").textContent = percent(card.confidence);
  $("words").textContent = card.agrees ? `${card.words}. The finished network agrees with the label.` : card.words;
  $("standing").hidden = !card.action;
  $("standing").className = card.action ?? "";
  $("standing").textContent = card.action ? standing(card) : "";
  $("back").disabled = card.rank === 0;
  $("forward").disabled = card.rank + 1 >= progress.total;
  const advice = card.suggested ? `suggested ${card.suggested}, ${percent(card.confidence)}` : "no suggestion";
  $("live").textContent = `Suspect ${card.rank + 1} of ${progress.total}: given label ${card.given}, ${advice}. ${$("standing").textContent}`;
}

function standing({ action, label }) {
  return label === null ? WORDS[action] : `${WORDS[action]} “${label}”`;
}

function showProgress() {
  const { total, decided, skipped, undo } = progress;
  $("bar").max = total || 1;
  $("bar").value = decided + skipped;
  const more = skipped ? ` · ${number(skipped)} skipped` : "";
  $("count").textContent = `${number(decided)} of ${number(total)} decided${more}`;
  $("undo").disabled = $("done-undo").disabled = undo === null && !mine.length;
}

function showDone() {
  const { total, decided, skipped } = progress;
  openView("done");
  $("done-title").textContent = !total ? "No suspects" : skipped ? "Through once" : "All decided";
  $("done-text").textContent = total
    ? `${number(decided)} of ${number(total)} suspects are decided, ${number(skipped)} skipped.`
    : "This run found nothing to look at.";
  $("done-next").hidden = !decided;
  $("done-skipped").hidden = !skipped;
  $("done-grid").hidden = $("done-undo").hidden = !total;
  $("live").textContent = `${$("done-title").textContent}. ${$("done-text").textContent}`;
}

const number = (value) => value.toLocaleString("en");
const percent = (value) => (value === null ? "" : `${Math.round(100 * value)}\u00a0% sure`);
const button = (action) => document.querySelector(`[data-action="${action}"]`);

function openView(name) {
  view = name;
  for (const each of ["one", "grid", "done"]) $(each).hidden = each !== name;
  $("view-grid").setAttribute("aria-pressed", name === "grid");
  $("view-one").setAttribute("aria-pressed", name !== "grid");
}

// ---- deciding

function act(action) {
  const target = view === "grid" ? grid.cards[grid.current] : view === "one" ? card : null;
  if (!target || running) return;
  if (action === "choose") openChoice(target);
  else if (action !== "suggestion" || target.suggested) decide(target, action, null);
}

function decide(target, action, label) {
  return alone(async () => {
    const { rank, revision } = target;
    const answer = await ask("/api/decide", { rank, action, label, revision });
    if (answer.saved) mine.push(answer.saved.revision);
    if (view !== "grid") return show(answer);
    progress = answer.progress;
    showProgress();
    const place = grid.cards.findIndex((each) => each.rank === rank);
    grid.cards[place] = answer.saved ?? answer.card;
    redrawCard(place);
    if (answer.saved) focusCard(Math.min(place + 1, grid.cards.length - 1));
    else notice(`This one was ${answer.error}. What stands is shown.`);
  });
}

function undo() {
  return alone(async () => {
    const revision = mine.pop() ?? progress.undo;
    if (revision === null) return;
    const answer = await ask("/api/undo", { revision });
    progress = answer.progress;
    showProgress();
    if (answer.error) return notice(`Not undone: ${answer.error}.`);
    if (view === "grid") return loadGrid();
    show(answer);
  });
}

function look(step) {
  const rank = card ? card.rank + step : -1;
  if (view === "one" && rank >= 0 && rank < progress.total) alone(async () => show(await ask(`/api/suspect/${rank}`)));
}

// ---- another class

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
  $("found-count").textContent = matches.length > FOUND ? `${FOUND} of ${number(matches.length)} shown.` : matches.length ? "" : "No such class.";
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

// ---- the grid

async function loadGrid() {
  const start = grid.starts.at(-1);
  const answer = await ask(`/api/suspects?start=${start}&count=${PAGE}&show=${$("show").value}`);
  progress = answer.progress;
  showProgress();
  grid.cards = answer.cards;
  grid.next = answer.next;
  $("cards").replaceChildren(...grid.cards.map(drawCard));
  $("nothing").hidden = grid.cards.length > 0;
  $("grid-back").disabled = grid.starts.length < 2;
  $("grid-forward").disabled = grid.next === null;
  $("live").textContent = `${grid.cards.length} suspects shown`;
  openView("grid");
  focusCard(0);
}

function drawCard(each, place) {
  const item = document.createElement("li");
  const body = document.createElement("button");
  const image = document.createElement("img");
  const caption = document.createElement("span");
  image.src = `${each.image}&small`;
  image.alt = "";
  image.loading = "lazy";
  caption.className = "caption";
  caption.append(each.given);
  if (each.suggested) {
    const suggested = document.createElement("b");
    suggested.textContent = each.suggested;
    caption.append(" → ", suggested);
  }
  body.append(image, caption);
  body.title = each.id;
  if (each.action) {
    const badge = document.createElement("span");
    badge.className = `badge ${each.action}`;
    badge.textContent = standing(each);
    body.append(badge);
    body.classList.add("settled");
  }
  body.addEventListener("focus", () => { grid.current = place; });
  body.addEventListener("click", () => alone(async () => show(await ask(`/api/suspect/${each.rank}`))));
  item.append(body);
  return item;
}

function redrawCard(place) {
  $("cards").children[place].replaceWith(drawCard(grid.cards[place], place));
}

function focusCard(place) {
  grid.current = place;
  $("cards").children[place]?.firstChild.focus();
}

function moveInGrid(key) {
  const tops = [...$("cards").children].map((item) => item.offsetTop);
  const columns = Math.max(1, tops.filter((top) => top === tops[0]).length);
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[key];
  const place = grid.current + step;
  if (place >= 0 && place < grid.cards.length) focusCard(place);
}

function turnPage(step) {
  return alone(async () => {
    if (step > 0 && grid.next !== null) grid.starts.push(grid.next);
    if (step < 0 && grid.starts.length > 1) grid.starts.pop();
    await loadGrid();
  }, true);
}

function openGrid(filter) {
  $("show").value = filter;
  grid.starts = [0];
  return alone(loadGrid, true);
}

// ---- buttons and keys

$("picture").addEventListener("load", ({ target }) => {
  target.style.maxWidth = `${LARGEST * target.naturalWidth}px`;
  target.style.maxHeight = `${LARGEST * target.naturalHeight}px`;
});

const resume = () => alone(async () => show(card && view === "grid" ? await ask(`/api/suspect/${card.rank}`) : await ask("/api/next")), true);

for (const each of document.querySelectorAll("[data-action]")) each.addEventListener("click", () => act(each.dataset.action));
$("undo").addEventListener("click", undo);
$("done-undo").addEventListener("click", undo);
$("back").addEventListener("click", () => look(-1));
$("forward").addEventListener("click", () => look(1));
$("view-one").addEventListener("click", resume);
$("view-grid").addEventListener("click", () => openGrid("open"));
$("done-grid").addEventListener("click", () => openGrid("all"));
$("done-skipped").addEventListener("click", () => alone(async () => show(await ask("/api/next?show=skipped"))));
$("show").addEventListener("change", () => openGrid($("show").value));
$("grid-forward").addEventListener("click", () => turnPage(1));
$("grid-back").addEventListener("click", () => turnPage(-1));
$("doubt-close").addEventListener("click", () => { $("doubt").hidden = true; });
$("show-keys").addEventListener("click", () => $("keys").showModal());
$("keys-on").checked = localStorage.getItem("oddly-keys") !== "off";
$("keys-on").addEventListener("change", () => localStorage.setItem("oddly-keys", $("keys-on").checked ? "on" : "off"));

document.addEventListener("keydown", (event) => {
  // For a frame after a dialog is closed its field still gets the keys.
  const typing = event.target.matches("input, select") && !event.target.closest("dialog:not([open])")
    || document.querySelector("dialog[open]");
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key.startsWith("Arrow")) {
    if (view === "grid") { event.preventDefault(); moveInGrid(event.key); }
    else if (event.key === "ArrowLeft") look(-1);
    else if (event.key === "ArrowRight") look(1);
    return;
  }
  if (event.repeat || !$("keys-on").checked) return;
  const key = event.key.toLowerCase();
  if (key in KEYS) { event.preventDefault(); act(KEYS[key]); }
  else if (key === "u") undo();
  else if (key === "g") view === "grid" ? resume() : openGrid("open");
  else if (key === "?") $("keys").showModal();
});

// The token has become a cookie: keep it out of the history and of screenshots.
history.replaceState(null, "", "/");
alone(async () => {
  const answer = await ask("/api/start");
  $("data").textContent = answer.data;
  $("run").textContent = answer.run;
  $("doubt-text").textContent = answer.doubt ?? "";
  $("doubt").hidden = !answer.doubt;
  document.title = `${answer.data} · oddly review`;
  show(answer);
});
