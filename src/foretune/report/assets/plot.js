// Pictures on canvases: drawn when first seen, and again when their size or the colours change.

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif';
const MANY = 2000; // beyond this, points are small squares: circles would take too long
const NAMED = 7; // so many algorithms get a colour of their own
const tip = document.getElementById("tip");
const pictures = [];

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children); // strings become text nodes: nothing is ever parsed as HTML
  return node;
}

// `draw(pen, width, height)` returns what the pointer can find: {x, y, text}, x and y in pixels.
function picture(host, draw) {
  const canvas = host.querySelector("canvas");
  let points = null;
  let seen = false;
  const paint = () => {
    const { width, height } = host.getBoundingClientRect();
    if (!seen || !width || !height) return;
    const ratio = Math.min(window.devicePixelRatio || 1, 3);
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = FONT;
    points = draw(pen, width, height);
  };
  const look = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    look.disconnect();
    seen = true;
    paint();
  }, { rootMargin: "300px" });
  look.observe(host);
  new ResizeObserver(paint).observe(host);
  canvas.addEventListener("pointermove", (event) => showTip(event, canvas, points));
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  pictures.push(() => { seen = true; paint(); });
  return paint;
}

function showTip(event, canvas, points) {
  if (!points) return;
  const box = canvas.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  let nearest = -1;
  let least = 24 ** 2;
  for (let index = 0; index < points.x.length; index++) {
    const distance = (points.x[index] - x) ** 2 + (points.y[index] - y) ** 2;
    if (distance < least) [least, nearest] = [distance, index];
  }
  tip.hidden = nearest < 0;
  if (nearest < 0) return;
  tip.textContent = points.text(nearest);
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.min(event.clientX + 14, window.innerWidth - width - 8);
  const above = event.clientY - height - 12;
  tip.style.transform = `translate(${Math.max(left, 8)}px, ${above < 8 ? event.clientY + 18 : above}px)`;
}

function trialText(row) {
  const lines = [`trial ${trials.number[row]}`];
  for (const metric of metrics) {
    if (!Number.isNaN(metric.values[row])) lines.push(`${metric.name}: ${short(metric.values[row])}`);
  }
  if (!isDone(row)) lines.push(STATUS[trials.status[row]], trials.reason(row));
  const chosen = raw.order.map((index) => parameters[index]);
  const shown = settingsOf(row, algorithm ? [algorithm, ...chosen.filter((one) => one !== algorithm)] : chosen);
  for (const [parameter, text] of shown.slice(0, 5)) lines.push(`${parameter.own}: ${text}`);
  return lines.filter(Boolean).map((line) => (line.length > 80 ? `${line.slice(0, 79)}…` : line)).join("\n");
}

// Grid lines, numbers and names; the name of the upright axis lies above it, easy to read.
function axes(pen, x, y, { xName, yName, xTicks }) {
  pen.lineWidth = 1;
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  for (const [value, text] of y.ticks(upright(y.from - y.to))) {
    line(pen, css("--grid"), x.from, y.at(value), x.to, y.at(value));
    pen.fillStyle = css("--soft");
    pen.fillText(text, x.from - 8, y.at(value));
  }
  pen.textBaseline = "top";
  pen.textAlign = "center";
  for (const [value, text] of xTicks ?? x.ticks(Math.max(2, (x.to - x.from) / 80))) {
    line(pen, css("--line"), x.at(value), y.from, x.at(value), y.from + 4);
    pen.fillStyle = css("--soft");
    pen.fillText(text, x.at(value), y.from + 8);
  }
  line(pen, css("--line"), x.from, y.from, x.to, y.from);
  pen.textAlign = "right";
  if (xName) pen.fillText(xName, x.to, y.from + 26);
  pen.textAlign = "left";
  if (yName) pen.fillText(yName, 0, 2);
}

const upright = (height) => Math.max(3, height / 36); // so many numbers fit

// How much room the numbers of the upright axis take.
function gutter(pen, low, high, height, log) {
  const ticks = scale(low, high, height, 0, log).ticks(upright(height));
  return Math.ceil(Math.max(16, ...ticks.map(([, text]) => pen.measureText(text).width))) + 12;
}

function line(pen, colour, x0, y0, x1, y1) {
  pen.strokeStyle = colour;
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}

function dots(pen, points, colourOf, { size, alpha = 1 }) {
  pen.globalAlpha = alpha;
  const many = points.x.length > MANY;
  for (let index = 0; index < points.x.length; index++) {
    pen.fillStyle = colourOf(index);
    if (many) {
      pen.fillRect(points.x[index] - size / 2, points.y[index] - size / 2, size, size);
    } else {
      pen.beginPath();
      pen.arc(points.x[index], points.y[index], size, 0, 7);
      pen.fill();
    }
  }
  pen.globalAlpha = 1;
}

function ring(pen, x, y, colour, size = 7) {
  pen.strokeStyle = colour;
  pen.lineWidth = 2;
  pen.beginPath();
  pen.arc(x, y, size, 0, 7);
  pen.stroke();
}

// The most frequent algorithms get colours of their own; the rest share a grey.
const palette = (() => {
  const names = algorithm ? algorithm.choices : (raw.map?.names ?? []);
  const weight = new Float64Array(Math.max(names.length, raw.map?.names.length ?? 0));
  for (let row = 0; algorithm && row < count; row++) {
    if (!Number.isNaN(algorithm.values[row])) weight[algorithm.values[row]] += 1;
  }
  for (const at of raw.map?.at ?? []) weight[at] += 1 / (1 + raw.map.at.length);
  const order = [...weight.keys()].filter((at) => weight[at] > 0).sort((a, b) => weight[b] - weight[a]);
  const own = order.length > NAMED + 1 ? order.slice(0, NAMED) : order.slice(0, NAMED + 1);
  const variable = (at) => (own.indexOf(at) < 0 || own.indexOf(at) >= NAMED ? "--other" : `--c${own.indexOf(at)}`);
  return {
    names: raw.map?.names ?? names,
    colours: () => Array.from(weight, (_, at) => css(variable(at))), // read anew: themes change
    key: own,
    variable,
    others: order.length - own.length,
  };
})();

function algorithmKey() {
  const chips = palette.key.map((at) => chip(palette.variable(at), palette.names[at]));
  return palette.others ? [...chips, chip("--other", `${palette.others} others`)] : chips;
}

function chip(variable, text, kind = "") {
  const mark = make("i", { class: kind });
  mark.style[kind ? "borderTopColor" : "background"] = `var(${variable})`;
  return make("span", {}, mark, text);
}

// Shares of 0 (worst or first) to 1 (best or last) as colours.
function ramp() {
  const stops = [0, 1, 2, 3, 4, 5].map((index) => css(`--s${index}`));
  const colours = Array.from({ length: 33 }, (_, step) => {
    const place = (step / 32) * 5;
    const [low, part] = [Math.min(Math.floor(place), 4), place - Math.min(Math.floor(place), 4)];
    const channel = (colour, at) => parseInt(colour.slice(1 + 2 * at, 3 + 2 * at), 16);
    const mixed = [0, 1, 2].map((at) => Math.round(channel(stops[low], at) * (1 - part) + channel(stops[low + 1], at) * part));
    return `rgb(${mixed.join(",")})`;
  });
  return (share) => colours[Math.round(share * 32)];
}

function rampKey(from, to) {
  const mark = make("i", { class: "ramp" });
  mark.style.background = "linear-gradient(90deg, var(--s0), var(--s1), var(--s2), var(--s3), var(--s4), var(--s5))";
  return make("span", {}, from, mark, to);
}

function choose(label, options, onChange) {
  const select = make("select", { "aria-label": label });
  options.forEach(([value, text]) => select.append(make("option", { value }, text)));
  select.addEventListener("change", () => onChange(select.value));
  return select;
}
