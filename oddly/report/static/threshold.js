// A threshold that can be moved; there is a chart for wide and one for narrow screens.
const whatif = page.whatif;
const sliders = $$("[role=slider]");
const setText = (id, text) => {
  const place = document.getElementById(id);
  if (place) place.textContent = text;
};
let at = whatif?.start;
const move = (to) => {
  const { thresholds, suspects: numbers, hits, mislabelled, below, total, start } = whatif;
  at = Math.max(0, Math.min(thresholds.length - 1, to));
  const [first, last] = [thresholds[0], thresholds[thresholds.length - 1]];
  const removed = numbers[at];
  const share = percent(removed / total);
  for (const slider of sliders) {
    const chart = slider.closest("svg");
    const [left, right] = [Number(chart.dataset.left), Number(chart.dataset.right)];
    const x = left + ((thresholds[at] - first) / (last - first)) * (right - left);
    slider.setAttribute("transform", `translate(${x.toFixed(2)},0)`);
    slider.setAttribute("aria-valuenow", at);
    slider.setAttribute("aria-valuetext", `${short(thresholds[at])}: ${count(removed)} suspects, ${share}`);
    const text = $(".mark-text", slider);
    const flip = x > 0.6 * right;
    text.setAttribute("x", flip ? -14 : 14);
    text.setAttribute("text-anchor", flip ? "end" : "start");
    text.textContent = `threshold ${short(thresholds[at])}`;
    $(".below", chart).setAttribute("width", Math.max(0, x - left));
    $(".above", chart).setAttribute("x", x);
    $(".above", chart).setAttribute("width", Math.max(0, right + 20 - x));
  }
  setText("at-threshold", short(thresholds[at]));
  setText("at-suspects", count(removed));
  setText("at-share", share);
  if (below) setText("at-below", `${below[at].toFixed(1)}\u00a0%`);
  if (hits) {
    setText("at-precision", removed ? percent(hits[at] / removed) : "–");
    setText("at-recall", mislabelled ? percent(hits[at] / mislabelled) : "–");
  }
  $("#put-back").disabled = at === start;
  const before = lowest;
  lowest = at > start ? thresholds[at] : -Infinity;
  if (list && page.total && before !== lowest) {
    clearTimeout(waiting); // the gallery follows once the line rests
    waiting = setTimeout(arrange, 120);
  }
};
const nearest = (slider, event) => {
  const chart = slider.closest("svg");
  const box = chart.getBoundingClientRect();
  const x = ((event.clientX - box.left) / box.width) * chart.viewBox.baseVal.width;
  const [left, right] = [Number(chart.dataset.left), Number(chart.dataset.right)];
  const { thresholds } = whatif;
  const [first, last] = [thresholds[0], thresholds[thresholds.length - 1]];
  const value = first + ((x - left) / (right - left)) * (last - first);
  const above = thresholds.findIndex((each) => each >= value);
  if (above < 1) return above === 0 ? 0 : thresholds.length - 1;
  return value - thresholds[above - 1] < thresholds[above] - value ? above - 1 : above;
};
for (const slider of whatif ? sliders : []) {
  const chart = slider.closest("svg");
  chart.onpointerdown = (event) => {
    if (event.button !== 0) return;
    event.preventDefault();
    slider.focus({ preventScroll: true });
    chart.setPointerCapture(event.pointerId);
    move(nearest(slider, event));
  };
  chart.onpointermove = (event) => chart.hasPointerCapture(event.pointerId) && move(nearest(slider, event));
  chart.ondblclick = () => move(whatif.start);
  slider.onkeydown = (event) => {
    const to = {
      ArrowLeft: at - 1,
      ArrowDown: at - 1,
      ArrowRight: at + 1,
      ArrowUp: at + 1,
      PageDown: at - 10,
      PageUp: at + 10,
      Home: 0,
      End: whatif.thresholds.length - 1,
      Escape: whatif.start,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    move(to);
  };
}
if (whatif) {
  $("#put-back").onclick = () => move(whatif.start);
  move(whatif.start);
}
