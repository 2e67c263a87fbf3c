// Two objectives against each other, and the trials that no other one beats in both.

function drawFront(host) {
  const [first, second] = raw.frontRanges.map((range, place) => ({ ...metrics[place], ...range }));
  const both = new Set(shownRows(second));
  const rows = shownRows(first).filter((row) => both.has(row));
  picture(host, (pen, width, height) => {
    const at = frame(pen, width, height, first, second);
    const place = (row) => [at.x(first.values[row]), at.y(second.values[row])];
    const grey = css("--other");
    const points = scatter(pen, rows, place, () => grey);
    stroke(pen, css("--accent"), 2, raw.front.map(place));
    raw.front.forEach((row) => ring(pen, place(row), css("--accent"), 4));
    return points;
  });
}
