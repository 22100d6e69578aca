// Undo: this tab's own decisions, the newest first; another one's only after a question.
"use strict";

const KEPT = 1000;  // own decisions that a reload of the page does not forget

let review = null;  // which start of the server; revisions of another one may be of other decisions
let mine = [];  // revisions of this tab's own decisions that stand

function recall(name) {
  review = name;
  const kept = JSON.parse(sessionStorage.getItem("oddly-mine"));
  if (kept?.review === review) mine = kept.mine;
}

function remember(revision) {
  mine = [...mine.filter((each) => each !== revision).slice(1 - KEPT), revision];
  sessionStorage.setItem("oddly-mine", JSON.stringify({ review, mine }));
}

function forget(revision) {
  mine = mine.filter((each) => each !== revision);
  sessionStorage.setItem("oddly-mine", JSON.stringify({ review, mine }));
}

function undo() {
  if (running) return hint("Not undone: the previous key is still being processed.");
  if (mine.length) takeBack(mine.at(-1));
  else if (progress.undo) askFirst(progress.undo);
}

function takeBack(revision) {
  return alone(async () => {
    const answer = await ask("/api/undo", { revision });
    forget(revision);  // undone, or it does not stand any more
    progress = answer.progress;
    showProgress();
    if (answer.error) return notice(`Not undone: ${answer.error}.`);
    if (view === "grid") return undoneInGrid(answer.card);
    show(answer);
  });
}

let foreign = null;  // the decision the dialog is about

function askFirst(decision) {
  foreign = decision;
  $("foreign-text").textContent = `${decision.id}: ${standing(decision)}`;
  $("foreign").showModal();
}

$("foreign-undo").addEventListener("click", () => { $("foreign").close(); takeBack(foreign.revision); });
