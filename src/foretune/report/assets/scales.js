// Numbers in words, and the way from values to pixels.

const plain = new Intl.NumberFormat("en", { maximumSignificantDigits: 5 });
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

function short(value) {
  const size = Math.abs(value);
  if (!isKnown(value)) return "-";
  if (size >= 1e9 || (size < 1e-4 && size > 0)) return value.toExponential(2).replace("e+", "e");
  return size >= 1e4 || Number.isInteger(value) ? whole.format(value) : plain.format(value);
}

function duration(seconds) {
  if (!isKnown(seconds)) return "-";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 100) return `${Number(seconds.toPrecision(3))} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

// A function from values between low and high to pixels between two ends.
function placer({ low, high, log }, from, to) {
  const unit = log ? Math.log : (value) => value;
  const span = unit(high) - unit(low) || 1;
  return (value) => from + ((unit(value) - unit(low)) / span) * (to - from);
}

// About `most` round values with their texts; whole numbers only, where asked for.
function ticksOf({ low, high, log, whole: onlyWhole }, most) {
  const decades = log ? Math.log10(high / low) : 0;
  if (decades > 0.7) return logTicks(low, high, decades, most);
  const rough = Math.max((high - low) / most, onlyWhole ? 1 : 0) || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const ticks = [];
  for (let index = Math.ceil(low / step - 1e-9); index * step <= high + step * 1e-9; index++) {
    const value = index * step + 0; // not -0
    const small = digits < 7 && Math.abs(value) < 1e7;
    ticks.push([value, small ? value.toLocaleString("en", { minimumFractionDigits: digits }) : short(value)]);
  }
  return ticks;
}

function logTicks(low, high, decades, most) {
  const every = Math.ceil(decades / most);
  const leads = decades * 3 <= most + 2 ? [1, 2, 5] : [1];
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
    for (const lead of power % every ? [] : leads) {
      const value = Number(`${lead}e${power}`); // exact, unlike 10 ** power
      if (value < low * 0.999 || value > high * 1.001) continue;
      ticks.push([value, power < -3 || power > 5 ? `${lead}e${power}` : plain.format(value)]);
    }
  }
  return ticks;
}
