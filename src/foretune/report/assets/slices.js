// How trials scored along each of the hyperparameters that mattered most.

const MOST_CHOICES = 16;

function drawSlices() {
  const host = document.getElementById("slices");
  if (!host) return;
  const metric = metrics[0];
  const rows = finished(metric);
  const chosen = raw.order.map((index) => parameters[index]).filter((parameter) => varies(parameter, rows));
  const note = document.getElementById("slices-note");
  if (!chosen.length) {
    note.textContent = "No hyperparameter took more than one value.";
    return;
  }
  note.append("Each dot is a trial. ", rows.length > 1 ? rampKey("first ", " last") : "", " The ring is the best one.");
  note.className = "key";
  for (const parameter of chosen.slice(0, raw.slices)) {
    const plot = make("div", { class: "plot" }, make("canvas", { role: "img", "aria-label": `${metric.name} by ${parameter.name}` }));
    const name = parameter.owner ? [make("small", {}, parameter.owner), parameter.own] : [parameter.own];
    host.append(make("figure", {}, make("figcaption", {}, ...name), plot));
    plot.style.height = `${Math.max(184, 17 * Math.min(parameter.choices.length, MOST_CHOICES) + 44)}px`;
    const draw = parameter.choices.length ? sliceOfChoices : sliceOfNumbers;
    const used = rows.filter((row) => !Number.isNaN(parameter.values[row]));
    picture(plot, (pen, width, height) => draw(pen, width, height, parameter, metric, used));
  }
}

function varies(parameter, rows) {
  const known = rows.filter((row) => !Number.isNaN(parameter.values[row]));
  return known.some((row) => parameter.values[row] !== parameter.values[known[0]]);
}

function sliceOfNumbers(pen, width, height, parameter, metric, rows) {
  const range = shownRange(metric, rows);
  const left = gutter(pen, range.low, range.high, height - 50, range.log);
  const x = scale(parameter.low, parameter.high, left + 4, width - 14, parameter.log);
  const y = scale(range.low, range.high, height - 26, 24, range.log);
  axes(pen, x, y, { yName: metric.name, xTicks: x.ticks(Math.max(3, (x.to - x.from) / 50)) });
  const shown = rows.filter((row) => inside(metric.values[row], range));
  return slicePoints(pen, shown, (row) => [x.at(parameter.values[row]), y.at(metric.values[row])]);
}

// Choices lie below each other, where their names have room.
function sliceOfChoices(pen, width, height, parameter, metric, rows) {
  const counts = parameter.choices.map(() => 0);
  rows.forEach((row) => { counts[parameter.values[row]] += 1; });
  const kept = [...counts.keys()].filter((at) => counts[at]).sort((a, b) => counts[b] - counts[a]).slice(0, MOST_CHOICES).sort((a, b) => a - b);
  const range = shownRange(metric, rows);
  const labels = kept.map((at) => fitted(pen, parameter.choices[at], width * 0.34));
  const left = Math.max(...labels.map((text) => pen.measureText(text).width)) + 14;
  const x = scale(range.low, range.high, left, width - 14, range.log);
  const band = (height - 44) / kept.length;
  const y = { from: height - 34, to: 6, ticks: () => [] };
  axes(pen, x, y, { xName: "", xTicks: x.ticks(Math.max(2, (x.to - x.from) / 70)) });
  pen.fillStyle = css("--soft");
  pen.textAlign = "right";
  pen.fillText(metric.name, x.to, height - 13);
  pen.textBaseline = "middle";
  kept.forEach((at, place) => {
    const middle = 8 + (place + 0.5) * band;
    line(pen, css("--grid"), left, middle, x.to, middle);
    pen.fillStyle = css("--ink");
    pen.fillText(labels[place], left - 8, middle);
  });
  const places = new Map(kept.map((at, place) => [at, place]));
  const shown = rows.filter((row) => inside(metric.values[row], range) && places.has(parameter.values[row]));
  // The golden ratio spreads neighbours evenly over the band, the same in every drawing.
  const spread = (row) => ((row * 0.618034) % 1) - 0.5;
  return slicePoints(pen, shown, (row) => [
    x.at(metric.values[row]),
    8 + (places.get(parameter.values[row]) + 0.5 + spread(row) * 0.6) * band,
  ]);
}

function fitted(pen, text, room) {
  if (pen.measureText(text).width <= room) return text;
  let end = Math.min(text.length, 60);
  while (end > 1 && pen.measureText(`${text.slice(0, end)}…`).width > room) end -= 1;
  return `${text.slice(0, end)}…`;
}

function slicePoints(pen, rows, place) {
  const places = rows.map(place);
  const points = {
    x: Float32Array.from(places, ([x]) => x),
    y: Float32Array.from(places, ([, y]) => y),
    text: (index) => trialText(rows[index]),
  };
  const colour = ramp();
  dots(pen, points, (index) => colour(rows[index] / Math.max(count - 1, 1)), { size: rows.length > MANY ? 1.6 : rows.length > 300 ? 2 : 3, alpha: rows.length > MANY ? 0.5 : 0.85 });
  const best = rows.indexOf(raw.best);
  if (best >= 0) ring(pen, points.x[best], points.y[best], css("--accent"), 6);
  return points;
}
