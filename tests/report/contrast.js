// Texts of the page whose contrast to what lies behind them is below 4.5, with the ratio.
() => {
  const linear = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const luminance = (colour) => {
    const [r, g, b] = colour.map((v) => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const parse = (text) => (text.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const over = ([r, g, b, a = 1], below) => [r, g, b].map((v, i) => a * v + (1 - a) * below[i]);
  const backdrop = (e) =>
    e ? over(parse(getComputedStyle(e).backgroundColor), backdrop(e.parentElement)) : [255, 255, 255];
  const exempt = ":disabled, [aria-hidden], noscript, dialog, option";
  const bad = [];
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim();
    const e = walker.currentNode.parentElement;
    if (!text || !e.checkVisibility() || e.closest(exempt)) continue;
    const picture = e.closest("svg");
    const behind = backdrop(picture ? picture.parentElement : e);
    const style = getComputedStyle(e);
    const front = over(parse(picture ? style.fill : style.color), behind);
    const [a, b] = [luminance(front), luminance(behind)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) bad.push(`${text.slice(0, 30)} ${ratio.toFixed(2)}`);
  }
  return bad;
}
