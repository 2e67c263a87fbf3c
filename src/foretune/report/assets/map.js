// The map: a point for each pipeline, coloured by its algorithm or by its score.

function drawMap(host) {
  let byScore = false;
  const repaint = picture(host, (pen, width, height) => pipelineMap(pen, width, height, byScore));
  const key = document.getElementById("map-key");
  const legend = make("span", { class: "chips" }, ...algorithmKey(raw.keys.map));
  key.append(legend);
  if (raw.map.shares.every((share) => share === null)) return;
  const options = [["algorithm", "coloured by algorithm"], ["score", "coloured by score"]];
  const select = choose("Colours", options, (value) => {
    byScore = value === "score";
    legend.replaceChildren(...(byScore ? [rampKey("worse", "better")] : algorithmKey(raw.keys.map)));
    repaint();
  });
  key.append(make("span", { class: "push" }, select));
}

function pipelineMap(pen, width, height, byScore) {
  const { x, y, algorithms, shares, trials: tried } = raw.map;
  const extent = (list) => list.reduce(({ low, high }, value) => ({ low: Math.min(low, value), high: Math.max(high, value) }), { low: Infinity, high: -Infinity });
  const [across, up] = [placer(extent(x), 14, width - 14), placer(extent(y), height - 14, 14)];
  const place = (index) => [across(x[index]), up(y[index])];
  const [colours, stops, pale] = [palette(), ramp(), css("--line")];
  const colourOf = (index) => {
    if (!byScore) return colours[raw.colours[algorithms[index]]];
    return shares[index] === null ? pale : shade(stops, shares[index]);
  };
  // The best are drawn last, so that none of them is hidden.
  const order = [...x.keys()].sort((a, b) => shares[a] - shares[b]);
  const points = scatter(pen, order, place, colourOf, mapText);
  const rings = order.filter((index) => tried[index] !== null);
  if (rings.length <= 500) rings.forEach((index) => ring(pen, place(index), css("--ink"), 5));
  rings.filter((index) => tried[index] === raw.best).forEach((index) => ring(pen, place(index), css("--accent"), 10));
  return points;
}

function mapText(index) {
  const { trials: tried, names, algorithms, values } = raw.map;
  if (tried[index] !== null) return trialText(tried[index]);
  const value = values[index];
  return `${names[algorithms[index]]}\n${value === null ? "not tried" : `${metrics[0].name}: ${short(value)}`}`;
}
