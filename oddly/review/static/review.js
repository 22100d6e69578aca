// The review page. Every name goes into the page as text, never as HTML.
"use strict";

const $ = (id) => document.getElementById(id);
const KEYS = { k: "keep", s: "suggestion", c: "choose", r: "remove", n: "skip" };
const WORDS = { keep: "Kept as", suggestion: "Changed to", relabel: "Changed to", remove: "Removed", skip: "Skipped" };
const LARGEST = 14;  // times a small picture is enlarged; beyond that it only blurs

let card = null;  // the suspect on show
let progress = { total: 0, decided: 0, skipped: 0, undo: null };
let running = null;  // the request under way
let view = "one";
let hinting = 0;  // the timer of the hint on show
const ahead = [];  // pictures fetched before they are needed

// ---- talking to the server

async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  };
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("Cannot reach the server, so your last choice was not saved. Start oddly review again and open the new link.");
  }
  if (response.status === 403) throw new Error("This link is no longer valid. Open the link shown in the terminal.");
  const answer = await response.json().catch(() => ({ error: "The server failed. See the terminal for the error." }));
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

// Why a key or button did nothing: briefly, at the foot of the page.
function hint(text) {
  $("hint").textContent = text;
  clearTimeout(hinting);
  hinting = setTimeout(() => { $("hint").textContent = ""; }, 2500);
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
  if (answer.error) notice(`This one was ${answer.error}. The page shows its current state.`);
}

// A new element for every picture: the one before is gone at once, and none of its events counts.
function showPicture() {
  const old = $("picture");
  if (old.dataset.address === card.image && !isMissing(old)) return;
  const picture = new Image();
  Object.assign(picture, { id: "picture", alt: `Picture ${card.id}`, decoding: "sync" });
  picture.dataset.address = card.image;
  for (const event of ["load", "error"]) picture.addEventListener(event, settlePicture);
  picture.src = card.image;
  old.replaceWith(picture);
  settlePicture();  // one that was prefetched is there at once
}

const isMissing = (image) => image.complete && !image.naturalWidth;

function settlePicture() {
  const picture = $("picture");
  const loading = !picture.complete;
  const missing = isMissing(picture);
  $("figure").setAttribute("aria-busy", loading);
  picture.hidden = loading || missing;
  $("loading").hidden = !loading && !missing;
  $("loading").textContent = missing ? "The picture could not be loaded." : "Loading the picture …";
  picture.style.maxWidth = `${LARGEST * picture.naturalWidth}px`;
  picture.style.maxHeight = `${LARGEST * picture.naturalHeight}px`;
}

function showCard() {
  showPicture();
  $("rank").textContent = `${number(card.rank + 1)} of ${number(progress.total)}`;
  $("name").textContent = card.id;
  $("given").textContent = card.given;
  $("keep-label").textContent = card.given;
  $("suggestion").hidden = button("suggestion").hidden = !card.suggested;
  $("suggested").textContent = $("suggestion-label").textContent = card.suggested ?? "";
  $("meter").hidden = card.confidence === null;
  $("meter").value = card.confidence ?? 0;
  $("confidence").textContent = percent(card.confidence);
  $("words").textContent = card.agrees ? `${card.words}. The final network agrees with the label.` : card.words;
  $("standing").hidden = !card.action;
  $("standing").className = card.action ?? "";
  $("standing").textContent = card.action ? standing(card) : "";
  $("back").disabled = card.rank === 0;
  $("forward").disabled = card.rank + 1 >= progress.total;
  const advice = card.suggested ? `network’s guess ${card.suggested} ${percent(card.confidence)}` : "no suggestion";
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
  $("undo").disabled = $("done-undo").disabled = !undo && !mine.length;
}

function showDone() {
  const { total, decided, skipped } = progress;
  openView("done");
  $("done-title").textContent = !total ? "No suspects" : skipped ? "First pass finished" : "All decided";
  $("done-text").textContent = total
    ? `${number(decided)} of ${number(total)} suspects are decided, ${number(skipped)} skipped.`
    : "This run found no suspects.";
  $("done-next").hidden = !decided;
  $("done-skipped").hidden = !skipped;
  $("done-grid").hidden = $("done-undo").hidden = !total;
  $("live").textContent = `${$("done-title").textContent}. ${$("done-text").textContent}`;
}

const number = (value) => value.toLocaleString("en");
const percent = (value) => (value === null ? "" : `(${Math.round(100 * value)}\u00a0%)`);
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
  if (!target) return;
  if (running) return hint("Not decided: the previous key is still being processed.");
  const picture = view === "grid" ? pictureInGrid(grid.current) : $("picture");
  if (action !== "skip" && !picture.complete) return hint("Not decided: the picture is still loading.");
  if (action === "choose") openChoice(target);
  else if (action !== "suggestion" || target.suggested) decide(target, action, null);
}

function decide(target, action, label) {
  return alone(async () => {
    const { rank, revision } = target;
    const answer = await ask("/api/decide", { rank, action, label, revision });
    if (answer.saved && !answer.again) remember(answer.saved.revision);  // else it may be another tab's
    if (view !== "grid") return show(answer);
    progress = answer.progress;
    showProgress();
    const place = placeOf(rank);
    grid.cards[place] = answer.saved ?? answer.card;
    redrawCard(place);
    if (answer.saved) focusCard(Math.min(place + 1, grid.cards.length - 1));
    else notice(`This one was ${answer.error}. The page shows its current state.`);
  });
}

function look(step) {
  const rank = card ? card.rank + step : -1;
  if (view === "one" && rank >= 0 && rank < progress.total) alone(async () => show(await ask(`/api/suspect/${rank}`)));
}
