// The best so far, each trial as a dot, and what random search is expected to find.

function drawCourse(host) {
  const state = { metric: metrics[0], log: count > 500 };
  const repaint = picture(host, (pen, width, height) => course(pen, width, height, state));
  const key = document.getElementById("course-key");
  key.append(chip("--accent", "best so far", "line"));
  if (raw.random.length) key.append(chip("--soft", "random search, expected", "line dashed"));
  if (trials.status.some((_, row) => isBad(row))) key.append("× failed");
  const controls = make("span", { class: "push" });
  key.append(...algorithmKey(raw.keys.trials), controls);
  const control = (label, options, chosen, change) => {
    const select = choose(label, options, (value) => {
      change(value);
      repaint();
    });
    select.value = chosen;
    controls.append(select);
  };
  if (metrics.length > 1) {
    control("Metric", metrics.map(({ name }, index) => [index, name]), 0, (index) => { state.metric = metrics[index]; });
  }
  if (count > 20) {
    const options = [["even", "trials evenly spaced"], ["log", "first trials spread out"]];
    control("Spacing", options, state.log ? "log" : "even", (value) => { state.log = value === "log"; });
  }
}

function course(pen, width, height, { metric, log }) {
  const better = metric.sign > 0 ? "lower is better" : "higher is better";
  const across = { low: 1, high: Math.max(raw.total, 2), log, name: "trials", whole: true };
  const at = frame(pen, width, height, across, { ...metric, name: `${metric.name} (${better})` });
  const colours = palette();
  const colourOf = (row) => colours[algorithm ? raw.colours[algorithm.values[row]] : 7];
  const points = scatter(pen, shownRows(metric), (row) => [at.x(places[row] + 1), at.y(metric.values[row])], colourOf);
  crosses(pen, at);
  pen.textAlign = "left";
  pen.fillStyle = css("--soft");
  if (metric.beyond) pen.fillText(`${whole.format(metric.beyond)} worse beyond the picture`, at.left, height - 8);
  pen.save();
  pen.beginPath();
  pen.rect(at.left - 6, at.top - 10, width - at.left + 6, at.foot - at.top + 10);
  pen.clip(); // the lines may begin far outside
  pen.setLineDash([6, 4]);
  const random = metric === metrics[0] ? raw.random : []; // known for this one only
  stroke(pen, css("--soft"), 2, random.map((value, index) => [at.x((raw.randomPlaces?.[index] ?? index) + 1), at.y(value)]));
  pen.setLineDash([]);
  bestLine(pen, at, metric);
  pen.restore();
  return points;
}

function bestLine(pen, at, metric) {
  const corners = [];
  let best = NaN;
  for (const row of allRows()) {
    const value = metric.values[row];
    if (!isDone(row) || !isKnown(value) || metric.sign * value >= metric.sign * best) continue;
    if (isKnown(best)) corners.push([at.x(places[row] + 1), at.y(best)]);
    corners.push([at.x(places[row] + 1), at.y(value)]);
    best = value;
  }
  if (!corners.length) return; // as where all are too large to be drawn
  stroke(pen, css("--accent"), 2.5, [...corners, [at.x(raw.total), at.y(best)]]);
  ring(pen, corners.at(-1));
}

// Failed trials have no value: they stand at the foot of the picture.
function crosses(pen, at) {
  pen.textAlign = "center";
  pen.fillStyle = css("--warn");
  for (const row of allRows().filter(isBad)) pen.fillText("×", at.x(places[row] + 1), at.foot - 7);
}
