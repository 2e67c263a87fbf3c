// The map: a point for each pipeline, coloured by its algorithm or by its score.

function drawMap() {
  const host = document.getElementById("map-plot");
  if (!host) return;
  const values = floats(raw.map.values);
  const state = { by: "algorithm", shares: rankShares(values) };
  const repaint = picture(host, (pen, width, height) => pipelineMap(pen, width, height, state));
  const key = document.getElementById("map-key");
  const legend = make("span", { class: "chips" });
  const relabel = () => legend.replaceChildren(...(state.by === "algorithm" ? algorithmKey() : [rampKey("worse", `better ${metrics[0].name}`)]));
  key.append(legend);
  if (values.some((value) => !Number.isNaN(value))) {
    const options = [["algorithm", "coloured by algorithm"], ["score", "coloured by score"]];
    key.append(choose("Colours", options, (value) => {
      state.by = value;
      relabel();
      repaint();
    }));
    key.lastChild.classList.add("push");
  }
  relabel();
}

// Ranks instead of values: a few disasters would make all others look alike.
function rankShares(values) {
  const known = [...values.keys()].filter((index) => !Number.isNaN(values[index]));
  known.sort((a, b) => metrics[0].sign * (values[b] - values[a]));
  const shares = new Float64Array(values.length).fill(NaN);
  known.forEach((index, rank) => { shares[index] = known.length > 1 ? rank / (known.length - 1) : 1; });
  return shares;
}

function pipelineMap(pen, width, height, { by, shares }) {
  const { x: across, y: up, at, trials: tried } = raw.map;
  // The best are drawn last, so that none of them is hidden.
  const order = [...at.keys()].sort((a, b) => (shares[a] || 0) - (shares[b] || 0));
  const bounds = (list) => list.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
  const x = scale(...bounds(across), 12, width - 12);
  const y = scale(...bounds(up), height - 12, 12);
  const points = {
    x: Float32Array.from(order, (index) => x.at(across[index])),
    y: Float32Array.from(order, (index) => y.at(up[index])),
    text: (place) => mapText(order[place]),
  };
  const colours = palette.colours();
  const shade = ramp();
  const pale = css("--line");
  const colourOf = (place) => {
    const index = order[place];
    if (by === "algorithm") return colours[at[index]];
    return Number.isNaN(shares[index]) ? pale : shade(shares[index]);
  };
  dots(pen, points, colourOf, { size: order.length > MANY ? 2.5 : 3, alpha: order.length > MANY ? 0.6 : 0.75 });
  if (tried.filter((row) => row !== null).length <= 500) {
    order.forEach((index, place) => {
      if (tried[index] === null) return;
      const best = tried[index] === raw.best;
      ring(pen, points.x[place], points.y[place], css(best ? "--accent" : "--ink"), best ? 9 : 5);
    });
  }
  return points;
}

function mapText(index) {
  const row = raw.map.trials[index];
  if (row !== null) return trialText(row);
  const value = raw.map.values[index];
  const score = value === null ? "not tried" : `${metrics[0].name}: ${short(value)}`;
  return `${raw.map.names[raw.map.at[index]]}\n${score}`;
}
