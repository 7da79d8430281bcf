// What is under the pointer: at the nearest stop of a picture, the values of all
// contenders. Without this script the page says the same, in its table.
for (const figure of document.querySelectorAll("figure[data-hover]")) {
  const data = JSON.parse(figure.dataset.hover), svg = figure.querySelector("svg");
  if (data.stops.length === 0) continue;
  const make = (name, attributes) => {
    const e = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
    return e;
  };
  const mark = make("g", {"pointer-events": "none"}), tip = document.createElement("div");
  tip.className = "tip";
  const leave = () => { mark.remove(); tip.remove(); };
  const show = (event) => {
    const box = svg.getBoundingClientRect(), at = (event.clientX - box.left) / box.width * data.width;
    const stop = data.stops.reduce((a, b) => Math.abs(b.x - at) < Math.abs(a.x - at) ? b : a);
    mark.replaceChildren(make("line", {
      x1: stop.x, x2: stop.x, y1: data.top, y2: data.bottom, style: "stroke:var(--muted);stroke-width:1;stroke-dasharray:2 2",
    }));
    const head = document.createElement("b");
    head.textContent = stop.head;
    tip.replaceChildren(head);
    for (const row of [...stop.rows].sort((a, b) => a.y - b.y)) {
      mark.append(make("circle", {cx: stop.x, cy: row.y, r: 4, style: `fill:${row.colour};stroke:var(--surface);stroke-width:1.5`}));
      const line = document.createElement("span"), dot = document.createElement("i"), value = document.createElement("em");
      dot.style.background = row.colour;
      value.textContent = row.value;
      line.append(dot, row.name, value);
      tip.append(line);
    }
    svg.append(mark);
    figure.append(tip);
    const frame = figure.getBoundingClientRect(), x = box.left - frame.left + stop.x / data.width * box.width;
    const fits = x + 16 + tip.offsetWidth < figure.clientWidth;
    tip.style.left = `${fits ? x + 12 : Math.max(4, x - 12 - tip.offsetWidth)}px`;
    tip.style.top = `${box.top - frame.top + 4}px`;
  };
  svg.addEventListener("pointermove", show);
  svg.addEventListener("pointerdown", show);
  figure.addEventListener("pointerleave", leave);
}
