// The story as columns: numbers in typed arrays, NaN where something is unknown.

const raw = JSON.parse(document.getElementById("story").textContent);
const count = raw.status.length;
const STATUS = ["done", "failed", "out of time", "running"];

const floats = (list) => Float64Array.from(list, (value) => value ?? NaN);

const trials = {
  number: raw.numbers ?? Array.from({ length: count }, (_, row) => row),
  status: Uint8Array.from(raw.status),
  seconds: floats(raw.seconds),
  reason: words(raw.reasons),
  chosenBy: words(raw.chosen),
};

const metrics = raw.metrics.map(([name, direction], index) => ({
  name,
  sign: direction === "max" ? -1 : 1, // what a value is multiplied with to be minimised
  values: floats(raw.values[index]),
}));

const parameters = raw.parameters.map((parameter) => {
  const values = new Float64Array(count).fill(NaN);
  let row = 0;
  parameter.values.forEach((value, index) => {
    row = parameter.rows ? row + parameter.rows[index] : index; // rows come as differences
    values[row] = value ?? NaN;
  });
  const cut = parameter.name.lastIndexOf(":");
  return {
    ...parameter,
    values,
    owner: parameter.name.slice(0, Math.max(cut, 0)).replaceAll(":", " / "),
    own: parameter.name.slice(cut + 1),
    text: (at) => valueText(parameter, values[at]),
  };
});

const algorithm = raw.colour === null ? null : parameters[raw.colour];

function words({ words: known, at }) {
  return (row) => (at ? known[at[row]] : known[0]) ?? "";
}

function valueText(parameter, value) {
  if (Number.isNaN(value)) return "";
  return parameter.choices.length ? parameter.choices[value] : short(value);
}

const isDone = (row) => trials.status[row] === 0;

// The rows with a value of this metric, and their values as losses.
function finished(metric) {
  const rows = [];
  for (let row = 0; row < count; row++) {
    if (isDone(row) && !Number.isNaN(metric.values[row])) rows.push(row);
  }
  return rows;
}

function settingsOf(row, among = parameters) {
  return among
    .filter((parameter) => !Number.isNaN(parameter.values[row]))
    .map((parameter) => [parameter, parameter.text(row)]);
}
