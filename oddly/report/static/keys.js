// Keys that work anywhere on the page.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (dialog.open) {
    const by = { ArrowLeft: -1, ArrowRight: 1, j: 1, k: -1 }[event.key];
    if (by) look(looked + by);
    return;
  }
  const field = event.target.closest("input, select, textarea");
  if (field) {
    if (event.key === "Escape" && field === controls["filter-id"]) {
      field.value = "";
      arrange();
      field.blur();
    }
    return;
  }
  const inGallery = current() >= 0;
  const perRow = () => getComputedStyle(list.firstChild).gridTemplateColumns.split(" ").length;
  const action = {
    t: () => sliders.find((slider) => slider.getClientRects().length)?.focus(),
    "/": () => controls["filter-id"]?.focus(),
    "?": () => $("#keys").scrollIntoView(),
    j: () => step(1),
    k: () => step(-1),
    ...(inGallery && {
      ArrowRight: () => step(1),
      ArrowLeft: () => step(-1),
      ArrowDown: () => step(perRow()),
      ArrowUp: () => step(-perRow()),
    }),
  }[event.key];
  if (action) {
    if (waiting) arrange();
    event.preventDefault();
    action();
  }
});
