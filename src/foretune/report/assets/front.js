// Two objectives against each other, and the trials that no other one beats in both.

function drawFront() {
  const host = document.getElementById("front-plot");
  if (!host) return;
  const [first, second] = metrics;
  const rows = finished(first).filter((row) => !Number.isNaN(second.values[row]));
  const front = unbeaten(first, second, rows);
  document.getElementById("front-note").textContent =
    `${front.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} trials cannot be improved in one without losing in the other; the line joins them.`;
  picture(host, (pen, width, height) => drawTrade(pen, width, height, first, second, rows, front));
}

function unbeaten(first, second, rows) {
  const loss = (metric, row) => metric.sign * metric.values[row];
  const sorted = [...rows].sort((a, b) => loss(first, a) - loss(first, b) || loss(second, a) - loss(second, b));
  let least = Infinity;
  return sorted.filter((row) => {
    const kept = loss(second, row) < least;
    if (kept) least = loss(second, row);
    return kept;
  });
}

function drawTrade(pen, width, height, first, second, rows, front) {
  if (!rows.length) return null;
  const across = shownRange(first, rows, front.map((row) => first.values[row]));
  const up = shownRange(second, rows, front.map((row) => second.values[row]));
  const left = gutter(pen, up.low, up.high, height, up.log);
  const x = scale(across.low, across.high, left, width - 14, across.log);
  const y = scale(up.low, up.high, height - 44, 26, up.log);
  axes(pen, x, y, { xName: first.name, yName: second.name });
  const shown = rows.filter((row) => inside(first.values[row], across) && inside(second.values[row], up));
  const points = {
    x: Float32Array.from(shown, (row) => x.at(first.values[row])),
    y: Float32Array.from(shown, (row) => y.at(second.values[row])),
    text: (index) => trialText(shown[index]),
  };
  const grey = css("--other");
  dots(pen, points, () => grey, { size: shown.length > MANY ? 2 : 3.5, alpha: 0.7 });
  pen.strokeStyle = css("--accent");
  pen.lineWidth = 2;
  pen.beginPath();
  front.forEach((row) => pen.lineTo(x.at(first.values[row]), y.at(second.values[row])));
  pen.stroke();
  const best = { x: front.map((row) => x.at(first.values[row])), y: front.map((row) => y.at(second.values[row])) };
  dots(pen, best, () => css("--accent"), { size: 4.5 });
  return points;
}
