// The story as columns: numbers in typed arrays, NaN where something is unknown.

const raw = JSON.parse(document.getElementById("story").textContent);
const count = raw.status.length;
const allRows = () => Array.from({ length: count }, (_, row) => row);
const floats = (list) => Float64Array.from(list, (value) => value ?? NaN);
const places = raw.places ?? allRows(); // of the trials among all, of which a long search shows a part
const words = ({ known, at }) => (row) => (at ? known[at[row]] : known[0]);

const trials = {
  number: raw.numbers ?? allRows(),
  status: Uint8Array.from(raw.status),
  seconds: floats(raw.seconds),
  reason: words(raw.reasons),
  chosenBy: words(raw.chosen),
};
const STATUS = ["done", "failed", "out of time", "stopped early", "running", "paused"];
const isDone = (row) => trials.status[row] === 0;
const isBad = (row) => trials.status[row] === 1 || trials.status[row] === 2;

const metrics = raw.metrics.map((metric) => ({ ...metric, values: floats(metric.values) }));

const parameters = raw.parameters.map((parameter) => {
  const values = new Float64Array(count).fill(NaN);
  let row = 0;
  parameter.values.forEach((value, index) => {
    row = parameter.rows ? row + parameter.rows[index] : index; // rows come as differences
    values[row] = value;
  });
  const { choices } = parameter;
  const text = (at) => (isKnown(values[at]) ? choices[values[at]] ?? short(values[at]) : "");
  return { ...parameter, values, text };
});
const algorithm = parameters[raw.algorithm]; // undefined where there is nothing to choose

const optional = {}; // parts that only some pages have

function isKnown(value) {
  return !Number.isNaN(value);
}

// The rows that can be drawn: done, with a value that lies within the picture.
function shownRows(metric) {
  return allRows().filter((row) => isDone(row) && metric.values[row] >= metric.low && metric.values[row] <= metric.high);
}

function settingsOf(row, among) {
  return among.filter(({ values }) => isKnown(values[row])).map((one) => [one, one.text(row)]);
}
