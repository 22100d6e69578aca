// The grid: many suspects at a time, keys act on the card in focus.
"use strict";

const PAGE = 60;  // cards

const grid = { cards: [], starts: [0], next: null, current: 0 };

// The page from `grid.starts` on; the focus goes to one card, if it is there.
async function loadGrid(rank = null) {
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
  focusCard(Math.max(0, placeOf(rank)));
}

const placeOf = (rank) => grid.cards.findIndex((each) => each.rank === rank);

async function undoneInGrid(undone) {
  if (placeOf(undone.rank) < 0) {
    const before = grid.cards[grid.current]?.rank;
    await loadGrid(undone.rank);
    if (placeOf(undone.rank) < 0) {
      focusCard(Math.max(0, placeOf(before)));
      hint(`Undone, but not on this page: ${undone.id}`);
    }
    return;
  }
  const place = placeOf(undone.rank);
  grid.cards[place] = undone;
  redrawCard(place);
  focusCard(place);
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

const pictureInGrid = (place) => $("cards").children[place].querySelector("img");

function redrawCard(place) {
  const picture = pictureInGrid(place);  // which is there already
  const item = drawCard(grid.cards[place], place);
  item.querySelector("img").replaceWith(picture);
  $("cards").children[place].replaceWith(item);
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
