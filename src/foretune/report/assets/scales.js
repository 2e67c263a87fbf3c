// Numbers in words, and the way from values to pixels.

function short(value) {
  if (Number.isNaN(value)) return "-";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e9) return value.toLocaleString("en");
  if (size >= 1e9 || size < 1e-4) return value.toExponential(2).replace("e+", "e");
  if (size >= 1e4) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(5)));
}

function duration(seconds) {
  if (Number.isNaN(seconds)) return "-";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 100) return `${Number(seconds.toPrecision(3))} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

function scale(low, high, from, to, log = false) {
  const place = log ? Math.log : (value) => value;
  if (!(high > low)) [low, high] = log ? [low / 2, low * 2] : [low - 0.5, low + 0.5];
  const [start, span] = [place(low), place(high) - place(low)];
  return {
    low, high, from, to,
    at: (value) => from + ((place(value) - start) / span) * (to - from),
    ticks: (most) => (log ? logTicks(low, high, most) : linearTicks(low, high, most)),
  };
}

function linearTicks(low, high, most) {
  const rough = (high - low) / Math.max(most, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const ticks = [];
  for (let index = Math.ceil(low / step - 1e-9); index * step <= high + step * 1e-9; index++) {
    const value = index * step;
    const plain = decimals < 7 && Math.abs(value) < 1e7;
    ticks.push([value, plain ? grouped(value, decimals) : value.toExponential(1)]);
  }
  return ticks;
}

const grouped = (value, decimals) =>
  value.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });

function logTicks(low, high, most) {
  const decades = Math.log10(high / low);
  if (decades < 0.7) return linearTicks(low, high, most);
  const every = Math.max(1, Math.ceil(decades / most));
  const leads = decades * 3 <= most + 1 || decades < 1.5 ? [1, 2, 5] : [1];
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high) + 1e-9; power++) {
    if (((power % every) + every) % every) continue;
    for (const lead of leads) {
      const value = Number(`${lead}e${power}`); // exact, unlike 10 ** power
      if (value < low * 0.999 || value > high * 1.001) continue;
      const plain = value >= 1e-3 && value < 1e6;
      ticks.push([value, plain ? value.toLocaleString("en", { maximumFractionDigits: 3 }) : `${lead}e${power}`]);
    }
  }
  return ticks;
}

// From the best loss to the worst one worth showing: a few disasters would flatten all others.
function shownRange(metric, rows, also = []) {
  const losses = Float64Array.from(rows, (row) => metric.sign * metric.values[row]).sort();
  const at = (share) => losses[Math.floor(share * (losses.length - 1))];
  const fence = at(0.75) + 1.5 * (at(0.75) - at(0.25)) || Infinity;
  let best = losses[0];
  let worst = losses.findLast((loss) => loss <= fence);
  for (const value of also) {
    best = Math.min(best, metric.sign * value);
    worst = Math.max(worst, metric.sign * value);
  }
  if (best === worst) worst += Math.abs(best) * 0.01 || 1;
  const log = metric.sign > 0 && best > 0 && worst / best > 50;
  const room = log ? 0 : (worst - best) * 0.06;
  const ends = log ? [best / 1.15, worst * 1.15] : [metric.sign * (best - room), metric.sign * (worst + room)];
  return { low: Math.min(...ends), high: Math.max(...ends), log, beyond: losses.filter((loss) => loss > worst).length };
}
