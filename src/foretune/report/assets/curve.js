// The best so far, each trial as a dot, and what random search is expected to find.

function drawCourse() {
  const host = document.getElementById("course-plot");
  if (!host) return;
  const state = { metric: metrics[0], log: count > 500 };
  const repaint = picture(host, (pen, width, height) => course(pen, width, height, state));
  const key = document.getElementById("course-key");
  const legend = make("span", { class: "chips" });
  const relabel = () => legend.replaceChildren(...courseKey(state.metric));
  key.append(legend);
  if (metrics.length > 1) {
    key.append(choose("Metric", metrics.map((one, index) => [index, one.name]), (index) => {
      state.metric = metrics[index];
      relabel();
      repaint();
    }));
  }
  const spacing = choose("Spacing of the trials", [["even", "trials evenly spaced"], ["log", "first trials spread out"]], (value) => {
    state.log = value === "log";
    repaint();
  });
  spacing.value = state.log ? "log" : "even";
  if (count > 20) key.append(spacing);
  key.lastChild.classList.add("push");
  relabel();
}

function courseKey(metric) {
  const lines = [chip("--accent", "best so far", "line")];
  if (randomOf(metric).length) lines.push(chip("--soft", "random search, expected", "line dashed"));
  if (trials.status.some((status) => status === 1 || status === 2)) lines.push(make("span", {}, "× failed"));
  return [...lines, ...(algorithm ? algorithmKey() : [])];
}

// Known for what the search looked for only.
const randomOf = (metric) => (metric === metrics[0] ? raw.random.slice(0, count) : []);

function course(pen, width, height, { metric, log }) {
  const rows = finished(metric);
  if (!rows.length) return null;
  const random = randomOf(metric);
  const range = shownRange(metric, rows, random.slice(-1));
  const left = gutter(pen, range.low, range.high, height, range.log);
  const x = scale(1, Math.max(count, 2), left, width - 12, log);
  const y = scale(range.low, range.high, height - 44, 26, range.log);
  const better = metric.sign > 0 ? "lower is better" : "higher is better";
  const ticks = log || count > 12 ? null : Array.from({ length: count }, (_, row) => [row + 1, String(row + 1)]);
  axes(pen, x, y, { xName: "trials", yName: `${metric.name} (${better})`, xTicks: ticks });
  const shown = rows.filter((row) => inside(metric.values[row], range));
  const points = {
    x: Float32Array.from(shown, (row) => x.at(row + 1)),
    y: Float32Array.from(shown, (row) => y.at(metric.values[row])),
    text: (index) => trialText(shown[index]),
  };
  const colours = palette.colours();
  const neutral = css("--other");
  const colourOf = (index) => (algorithm ? colours[algorithm.values[shown[index]]] ?? neutral : neutral);
  dots(pen, points, colourOf, { size: shown.length > MANY ? 2 : shown.length > 300 ? 2.2 : 4, alpha: shown.length > MANY ? 0.5 : 0.85 });
  crosses(pen, x, y);
  pen.save();
  pen.beginPath();
  pen.rect(x.from - 2, y.to - 4, x.to - x.from + 8, y.from - y.to + 6);
  pen.clip();
  randomLine(pen, x, y, random);
  bestLine(pen, x, y, metric, rows);
  pen.restore();
  if (range.beyond) said(pen, width, `${range.beyond.toLocaleString("en")} worse ${range.beyond > 1 ? "trials" : "trial"} beyond the picture`);
  return points;
}

const inside = (value, range) => value >= range.low && value <= range.high;

function said(pen, width, text) {
  pen.fillStyle = css("--soft");
  pen.textAlign = "right";
  pen.textBaseline = "top";
  pen.fillText(text, width - 12, 2);
}

function bestLine(pen, x, y, metric, rows) {
  pen.strokeStyle = css("--accent");
  pen.lineWidth = 2.5;
  pen.lineJoin = "round";
  pen.beginPath();
  let best = Infinity;
  let at = 0;
  for (const row of rows) {
    const loss = metric.sign * metric.values[row];
    if (loss >= best) continue;
    if (best < Infinity) pen.lineTo(x.at(row + 1), y.at(metric.sign * best));
    else pen.moveTo(x.at(row + 1), y.at(metric.sign * loss));
    best = loss;
    at = row;
    pen.lineTo(x.at(row + 1), y.at(metric.sign * best));
  }
  pen.lineTo(x.at(Math.max(count, 1)), y.at(metric.sign * best));
  pen.stroke();
  ring(pen, x.at(at + 1), y.at(metric.sign * best), css("--accent"));
}

function randomLine(pen, x, y, random) {
  pen.strokeStyle = css("--soft");
  pen.lineWidth = 2;
  pen.setLineDash([6, 4]);
  pen.beginPath();
  random.forEach((value, index) => pen.lineTo(x.at(index + 1), y.at(value)));
  pen.stroke();
  pen.setLineDash([]);
}

// Failed trials have no value: they stand at the foot of the picture.
function crosses(pen, x, y) {
  const reach = count > 1000 ? 2 : 3.5;
  for (let row = 0; row < count; row++) {
    if (trials.status[row] !== 1 && trials.status[row] !== 2) continue;
    const [across, up] = [x.at(row + 1), y.from - 7];
    pen.lineWidth = count > 1000 ? 0.5 : 1.5;
    line(pen, css("--warn"), across - reach, up - reach, across + reach, up + reach);
    line(pen, css("--warn"), across - reach, up + reach, across + reach, up - reach);
  }
}
