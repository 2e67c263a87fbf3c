// Pictures on canvases: drawn when first seen, and again when their size or the colours change.

const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif';
const MANY = 2000; // beyond this, points are small squares: circles would take too long
const tip = document.getElementById("tip");
const pictures = [];

function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
const palette = () => [0, 1, 2, 3, 4, 5, 6].map((index) => css(`--c${index}`)).concat(css("--other"));
const ramp = () => [0, 1, 2, 3, 4, 5].map((index) => css(`--s${index}`));
const shade = (stops, share) => stops[Math.round(share * 5)];

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children); // strings become text nodes: nothing is ever parsed as HTML
  return node;
}

// `draw(pen, width, height)` returns what the pointer can find: {x, y, text}, in pixels.
function picture(host, draw) {
  const canvas = host.querySelector("canvas");
  let points = null;
  let seen = false;
  const paint = () => {
    const { width, height } = host.getBoundingClientRect();
    if (!seen || !width) return;
    const ratio = Math.min(devicePixelRatio, 3);
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = FONT;
    points = draw(pen, width, height);
  };
  const paintNow = () => {
    seen = true;
    paint();
  };
  const look = new IntersectionObserver(([entry]) => {
    if (!entry.isIntersecting) return;
    look.disconnect();
    paintNow();
  }, { rootMargin: "300px" });
  look.observe(host);
  let width = 0;
  new ResizeObserver(() => {
    if (width && width !== host.clientWidth) paint();
    width = host.clientWidth;
  }).observe(host);
  canvas.addEventListener("pointermove", (event) => points && showTip(event, canvas, points));
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  pictures.push(paintNow);
  return paint;
}

function showTip({ clientX, clientY }, canvas, points) {
  const box = canvas.getBoundingClientRect();
  let nearest = -1;
  let least = 24 ** 2;
  points.x.forEach((x, index) => {
    const distance = (x - clientX + box.left) ** 2 + (points.y[index] - clientY + box.top) ** 2;
    if (distance < least) [least, nearest] = [distance, index];
  });
  tip.hidden = nearest < 0;
  if (tip.hidden) return;
  tip.textContent = points.text(nearest);
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.max(8, Math.min(clientX + 14, innerWidth - width - 8));
  const top = clientY > height + 20 ? clientY - height - 12 : clientY + 18;
  tip.style.transform = `translate(${left}px, ${top}px)`;
}

function trialText(row) {
  const settings = settingsOf(row, raw.telling.map((index) => parameters[index])).slice(0, 5);
  const lines = [
    `trial ${trials.number[row]}`,
    ...metrics.filter(({ values }) => isKnown(values[row])).map(({ name, values }) => `${name}: ${short(values[row])}`),
    ...settings.map(([parameter, text]) => `${parameter.own}: ${text}`),
  ];
  return lines.map((line) => (line.length > 80 ? `${line.slice(0, 79)}…` : line)).join("\n");
}

// Draws both axes, each {low, high, log, name, ticks}, and returns the places of values on them.
// The name of the upright axis lies above it, where it is easy to read.
function frame(pen, width, height, across, upright) {
  const top = upright.name ? 26 : 8;
  const foot = height - (across.name ? 44 : 28);
  const numbers = upright.ticks ?? ticksOf(upright, Math.max(3, (foot - top) / 36));
  const left = Math.ceil(Math.max(16, ...numbers.map(([, text]) => pen.measureText(text).width))) + 12;
  const at = { x: placer(across, left + 4, width - 16), y: placer(upright, foot, top), left, foot, top };
  const write = (text, x, y, align) => {
    pen.textAlign = align;
    pen.fillStyle = css("--soft");
    pen.fillText(text, x, y);
  };
  pen.textBaseline = "middle";
  for (const [value, text] of numbers) {
    stroke(pen, css("--grid"), 1, [[left, at.y(value)], [width - 12, at.y(value)]]);
    write(text, left - 8, at.y(value), "right");
  }
  stroke(pen, css("--line"), 1, [[left, foot], [width - 12, foot]]);
  for (const [value, text] of ticksOf(across, Math.max(3, (width - left) / 55))) {
    const x = at.x(value);
    stroke(pen, css("--line"), 1, [[x, foot], [x, foot + 4]]);
    write(text, Math.min(x, width - pen.measureText(text).width / 2), foot + 14, "center");
  }
  write(across.name ?? "", width - 12, height - 8, "right");
  write(upright.name ?? "", 0, 8, "left");
  return at;
}

function stroke(pen, colour, width, places) {
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.beginPath();
  for (const [x, y] of places) pen.lineTo(x, y);
  pen.stroke();
}

// One dot for each item, at the pixels that `place` gives; returns what the pointer can find.
function scatter(pen, items, place, colourOf, text = trialText) {
  const many = items.length > MANY;
  const size = many ? 2 : items.length > 300 ? 2.2 : 3.5;
  const points = { x: new Float32Array(items.length), y: new Float32Array(items.length), text: (index) => text(items[index]) };
  pen.globalAlpha = many ? 0.5 : 0.85;
  items.forEach((item, index) => {
    const [x, y] = place(item);
    points.x[index] = x;
    points.y[index] = y;
    pen.fillStyle = colourOf(item);
    if (many) pen.fillRect(x - 1, y - 1, size, size);
    else disc(pen, x, y, size).fill();
  });
  pen.globalAlpha = 1;
  return points;
}

function disc(pen, x, y, radius) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 7);
  return pen;
}

function ring(pen, [x, y], colour = css("--accent"), radius = 7) {
  pen.strokeStyle = colour;
  pen.lineWidth = 2;
  disc(pen, x, y, radius).stroke();
}

function chip(variable, text, kind = "") {
  const mark = make("i", { class: kind });
  mark.style[kind ? "borderTopColor" : "background"] = `var(${variable})`;
  return make("span", {}, mark, text);
}

const algorithmKey = (key) => key.map(([text, colour]) => chip(colour < 7 ? `--c${colour}` : "--other", text));
const rampKey = (from, to) => make("span", {}, from, make("i", { class: "ramp" }), to);

function choose(label, options, onChange) {
  const select = make("select", { "aria-label": label });
  options.forEach(([value, text]) => select.append(make("option", { value }, text)));
  select.addEventListener("change", () => onChange(select.value));
  return select;
}
