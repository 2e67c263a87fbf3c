// How trials scored along each of the hyperparameters that mattered most.

function drawSlices(host) {
  const rows = shownRows(metrics[0]);
  const note = document.getElementById("slices-note");
  if (!raw.slices.length) {
    note.textContent = "No hyperparameter took more than one value.";
    return;
  }
  note.append("Each dot is a trial,", rampKey("the first", "to the last."), raw.best === null ? "" : `The ring is the ${raw.superlative} one.`);
  for (const parameter of raw.slices.map((index) => parameters[index])) {
    const label = `${metrics[0].name} by ${parameter.name}`;
    const plot = make("div", { class: "plot" }, make("canvas", { role: "img", "aria-label": label }));
    const name = make("figcaption", {}, make("small", {}, parameter.owner), parameter.own);
    host.append(make("figure", {}, name, plot));
    const used = rows.filter((row) => isKnown(parameter.values[row]));
    const kept = keptChoices(parameter, used);
    plot.style.height = `${Math.max(184, 17 * kept.length + 50)}px`;
    picture(plot, (pen, width, height) => slice(pen, width, height, parameter, used, kept));
  }
}

// The choices that are shown, in their own order: the most frequent ones.
function keptChoices({ choices, values }, rows) {
  const counts = choices.map(() => 0);
  for (const row of rows) counts[values[row]] += 1;
  const used = [...counts.keys()].filter((choice) => counts[choice]);
  return used.sort((a, b) => counts[b] - counts[a]).slice(0, 16).sort((a, b) => a - b);
}

function slice(pen, width, height, parameter, rows, kept) {
  const metric = metrics[0];
  const { values } = parameter;
  let place;
  let shown = rows;
  if (kept.length) {
    // Choices lie below each other, where their names have room.
    const ticks = kept.map((choice, index) => [index + 0.5, fitted(pen, parameter.choices[choice], width * 0.34)]);
    const at = frame(pen, width, height, metric, { low: kept.length, high: 0, ticks });
    const levels = new Map(kept.map((choice, index) => [choice, index]));
    shown = rows.filter((row) => levels.has(values[row]));
    // The golden ratio spreads neighbours evenly over the band, the same in every drawing.
    place = (row) => [at.x(metric.values[row]), at.y(levels.get(values[row]) + 0.2 + 0.6 * ((row * 0.618034) % 1))];
  } else {
    const at = frame(pen, width, height, { ...parameter, name: "" }, metric);
    place = (row) => [at.x(values[row]), at.y(metric.values[row])];
  }
  const stops = ramp();
  const points = scatter(pen, shown, place, (row) => shade(stops, row / Math.max(count - 1, 1)));
  if (shown.includes(raw.best)) ring(pen, place(raw.best));
  return points;
}

function fitted(pen, text, room) {
  let end = Math.min(text.length, 60);
  while (end > 1 && pen.measureText(text.slice(0, end)).width > room) end -= 1;
  return end < text.length ? `${text.slice(0, end)}…` : text;
}
