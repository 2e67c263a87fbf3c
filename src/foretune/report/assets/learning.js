// What each trial reported, over its steps, before a band of what past tasks did.

const SHADES = ["--c5", "--warn", "--warn", "--other", "--c2", "--c4"]; // by status
const DRAWN_FIRST = [3, 5, 1, 2, 4, 0]; // stopped ones lie below, complete ones above

function drawLearning(host) {
  const { steps, past } = raw.curves;
  const positive = steps.filter((step) => step > 0);
  const [low, high] = [Math.min(...positive), Math.max(...positive)];
  const state = { show: "all", log: high / low >= 27 };
  const repaint = picture(host, (pen, width, height) => learning(pen, width, height, state, low, high));
  const key = document.getElementById("learning-key");
  const controls = make("span", { class: "push" });
  const rows = allRows().filter((row) => raw.curves.lengths[row]);
  if (raw.best !== null) key.append(chip("--accent", raw.superlative, "line"));
  for (const status of [...DRAWN_FIRST].reverse()) {
    const some = rows.filter((row) => trials.status[row] === status).length;
    if (some) key.append(chip(SHADES[status], `${whole.format(some)} ${status ? STATUS[status] : "complete"}`, "line"));
  }
  if (past) key.append(chip("--wash", `past trials: middle 80 % and median of ${whole.format(past.trials)}, of ${whole.format(past.tasks)} ${past.tasks > 1 ? "tasks" : "task"}`, "band"));
  const control = (label, options, chosen, change) => {
    const select = choose(label, options, (value) => {
      change(value);
      repaint();
    });
    select.value = chosen;
    controls.append(select);
  };
  const options = [["all", "all trials"], ["best", "the best 20"], ["ended", "complete trials"], ["early", "stopped and paused"]];
  if (rows.length > 1) control("Trials", options, "all", (value) => { state.show = value; });
  const spacing = [["even", "steps evenly spaced"], ["log", "first steps spread out"]];
  if (high > low) control("Spacing of steps", spacing, state.log ? "log" : "even", (value) => { state.log = value === "log"; });
  key.append(controls);
}

function learning(pen, width, height, { show, log }, low, high) {
  const { shown, past, steps } = raw.curves;
  const metric = metrics[0];
  const across = { low: log ? low : Math.min(0, ...steps), high: high > low ? high : low + 1, log, name: "step" };
  const better = metric.sign > 0 ? "lower is better" : "higher is better";
  const at = frame(pen, width, height, across, { ...shown, name: `${metric.name} (${better})` });
  pen.textAlign = "left";
  pen.fillStyle = css("--soft");
  if (shown.beyond) pen.fillText(`${whole.format(shown.beyond)} worse values beyond the picture`, at.left, height - 8);
  pen.save();
  pen.beginPath();
  pen.rect(at.left - 2, at.top - 6, width - at.left, at.foot - at.top + 6);
  pen.clip();
  if (past) band(pen, at, past, log);
  const lines = curvesToDraw(show);
  const thin = lines.length > 60;
  const faint = thin ? Math.max(0.25, 5 / Math.sqrt(lines.length)) : 0.8;
  lines.forEach((row) => {
    pen.globalAlpha = isDone(row) ? Math.max(faint, 0.6) : faint;
    curveLine(pen, at, row, log, css(SHADES[trials.status[row]]), thin ? 1 : 1.5);
  });
  pen.globalAlpha = 1;
  if (raw.best !== null) curveLine(pen, at, raw.best, log, css("--accent"), 3);
  const points = reportPoints(pen, at, lines, log);
  pen.restore();
  return points;
}

// The rows of the chosen trials that have a curve, in the order of drawing.
function curvesToDraw(show) {
  const rows = allRows().filter((row) => raw.curves.lengths[row]);
  const [metric] = metrics;
  const by = { ended: (row) => isDone(row), early: (row) => [3, 5].includes(trials.status[row]), all: () => true };
  if (show === "best") {
    const good = rows.filter((row) => isDone(row) && isKnown(metric.values[row]));
    return good.sort((a, b) => metric.sign * (metric.values[a] - metric.values[b])).slice(0, 20).reverse();
  }
  return DRAWN_FIRST.flatMap((status) => rows.filter((row) => trials.status[row] === status && by[show](row)));
}

let total = 0;
const curveStarts = raw.curves.lengths.map((length) => (total += length) - length);

function lastStep(row) {
  const { lengths, steps } = raw.curves;
  return lengths[row] ? steps[curveStarts[row] + lengths[row] - 1] : NaN;
}

// The points of a trial that can be drawn: known values, and steps above 0 on a logarithmic axis.
function pointsOf(row, log) {
  const places = Array.from({ length: raw.curves.lengths[row] }, (_, index) => curveStarts[row] + index);
  return places.filter((place) => raw.curves.values[place] !== null && (!log || raw.curves.steps[place] > 0));
}

function curveLine(pen, at, row, log, colour, size) {
  const { steps, values } = raw.curves;
  const places = pointsOf(row, log).map((place) => [at.x(steps[place]), at.y(values[place])]);
  if (!places.length) return;
  stroke(pen, colour, size, places);
  pen.fillStyle = colour;
  disc(pen, ...places.at(-1), size + 0.8).fill();
}

function band(pen, at, { steps, low, middle, high }, log) {
  const shown = [...steps.keys()].filter((index) => !log || steps[index] > 0);
  const edge = (column, order) => order.map((index) => [at.x(steps[index]), at.y(column[index])]);
  pen.fillStyle = css("--band");
  pen.beginPath();
  for (const [x, y] of [...edge(high, shown), ...edge(low, [...shown].reverse())]) pen.lineTo(x, y);
  pen.fill();
  pen.setLineDash([5, 4]);
  stroke(pen, css("--soft"), 1.5, edge(middle, shown));
  pen.setLineDash([]);
}

// What the pointer can find: every report of the drawn trials.
function reportPoints(pen, at, rows, log) {
  const { steps, values } = raw.curves;
  const own = rows.flatMap((row) => pointsOf(row, log).map((place) => [row, place]));
  const inside = own.filter(([, place]) => values[place] >= raw.curves.shown.low && values[place] <= raw.curves.shown.high);
  const text = (index) => {
    const [row, place] = inside[index];
    return `step ${short(steps[place])}: ${short(values[place])}\n${STATUS[trials.status[row]]}\n${trialText(row)}`;
  };
  return { x: Float32Array.from(inside, ([, place]) => at.x(steps[place])), y: Float32Array.from(inside, ([, place]) => at.y(values[place])), text };
}

optional["learning-plot"] = drawLearning;
