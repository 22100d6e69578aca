// Buttons and keys, and the beginning.
"use strict";

const resume = () => alone(async () => show(card && view === "grid" ? await ask(`/api/suspect/${card.rank}`) : await ask("/api/next")), true);

for (const each of document.querySelectorAll("[data-action]")) each.addEventListener("click", () => act(each.dataset.action));
for (const id of ["undo", "done-undo"]) $(id).addEventListener("click", undo);
$("back").addEventListener("click", () => look(-1));
$("forward").addEventListener("click", () => look(1));
$("view-one").addEventListener("click", resume);
$("view-grid").addEventListener("click", () => openGrid("open"));
$("done-grid").addEventListener("click", () => openGrid("all"));
$("done-skipped").addEventListener("click", () => alone(async () => show(await ask("/api/next?show=skipped"))));
$("show").addEventListener("change", () => openGrid($("show").value));
$("grid-forward").addEventListener("click", () => turnPage(1));
$("grid-back").addEventListener("click", () => turnPage(-1));
$("doubt-more").addEventListener("click", ({ target }) => {
  const open = $("doubt").classList.toggle("open");
  target.setAttribute("aria-expanded", open);
  target.textContent = open ? "Less" : "More";
});
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
  recall(answer.review);
  $("data").textContent = answer.data;
  $("run").textContent = answer.run;
  $("doubt-text").textContent = answer.doubt ?? "";
  $("doubt").hidden = !answer.doubt;
  document.title = `${answer.data} · oddly review`;
  show(answer);
});
