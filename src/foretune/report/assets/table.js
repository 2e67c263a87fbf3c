// All trials in a table that builds only the rows in view, so that 46,000 are as quick as 30.

const MOST_COLUMNS = 8; // of hyperparameters; the others share one column
const OVERSCAN = 8;
const ROW_HEIGHT = 32; // as the style sheet has it

function drawTable() {
  const host = document.getElementById("trials-table");
  if (!host) return;
  const columns = tableColumns();
  const body = make("tbody");
  const headings = columns.map((column, index) => heading(column, () => sortBy(index)));
  const table = make("table", { role: "grid", "aria-rowcount": String(count + 1) }, make("thead", {}, make("tr", {}, ...headings)), body);
  const state = { columns, headings, host, body, rows: [...Array(count).keys()], sorted: -1, down: false, selected: -1, drawn: "" };
  const sortBy = (index) => {
    state.down = state.sorted === index ? !state.down : columns[index].bestFirst === "descending";
    state.sorted = index;
    sortRows(state);
  };
  host.append(table);
  tableTools(state);
  sortBy(columns.findIndex((column) => column.bestFirst) );
  host.addEventListener("scroll", () => requestAnimationFrame(() => fillRows(state)));
  new ResizeObserver(() => fillRows(state)).observe(host);
  host.addEventListener("click", (event) => {
    const row = event.target.closest("tr[data-place]");
    if (row) select(state, Number(row.dataset.place));
  });
  host.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || event.target !== host) return;
    event.preventDefault();
    const place = Math.min(Math.max(state.rows.indexOf(state.selected) + step, 0), state.rows.length - 1);
    reveal(state, place);
    select(state, place);
  });
  addEventListener("beforeprint", () => fillRows(state, 50));
}

function tableColumns() {
  const stages = raw.stages.map((index) => parameters[index]);
  const others = raw.order.map((index) => parameters[index]).filter((one) => !stages.includes(one));
  const common = others.filter((one) => one.values.filter((value) => !Number.isNaN(value)).length * 2 >= count);
  const shown = common.slice(0, MOST_COLUMNS);
  const rest = others.filter((one) => !shown.includes(one));
  const column = (name, text, key, more = {}) => ({ name, text, key, ...more });
  const ofParameter = (one) => column(one.own, one.text, (row) => one.values[row], { owner: one.owner, right: !one.choices.length, parameter: one });
  const columns = [column("trial", (row) => String(trials.number[row]), (row) => trials.number[row], { right: true })];
  for (const metric of metrics) {
    columns.push(column(metric.name, (row) => short(metric.values[row]), (row) => metric.values[row], { right: true, bestFirst: metric.sign > 0 ? "ascending" : "descending" }));
  }
  if (trials.status.some((status) => status)) {
    const text = (row) => [STATUS[trials.status[row]], trials.reason(row)].filter(Boolean).join(": ");
    columns.push(column("ended", text, text, { bad: (row) => trials.status[row] === 1 || trials.status[row] === 2 }));
  }
  if (trials.seconds.some((seconds) => !Number.isNaN(seconds))) {
    columns.push(column("time", (row) => duration(trials.seconds[row]), (row) => trials.seconds[row], { right: true }));
  }
  columns.push(...stages.map(ofParameter), ...shown.map(ofParameter));
  if (rest.length) {
    const text = (row) => settingsOf(row, rest).map(([one, value]) => `${one.own}=${value}`).join(", ");
    columns.push(column("other settings", text, text));
  }
  if (raw.chosen.words.some(Boolean)) columns.push(column("chosen by", trials.chosenBy, trials.chosenBy));
  return columns;
}

function heading(column, onClick) {
  const owner = column.owner ? [make("small", {}, column.owner)] : [];
  const button = make("button", { type: "button" }, ...owner, column.name);
  button.addEventListener("click", onClick);
  return make("th", { scope: "col", "aria-sort": "none", class: column.right ? "right" : "" }, button);
}

function sortRows(state) {
  const { sorted, down, columns, headings } = state;
  headings.forEach((cell, index) => cell.setAttribute("aria-sort", index !== sorted ? "none" : down ? "descending" : "ascending"));
  const keys = Array.from({ length: count }, (_, row) => columns[sorted].key(row));
  const unknown = (key) => key === "" || Number.isNaN(key);
  const compare = typeof keys[0] === "string" ? (a, b) => (a < b ? -1 : a > b ? 1 : 0) : (a, b) => a - b;
  // What is unknown comes last in both directions; equal ones stay in the order of the trials.
  state.rows.sort((a, b) => {
    const [first, second] = [keys[a], keys[b]];
    if (unknown(first) || unknown(second)) return unknown(first) - unknown(second) || a - b;
    return (down ? -1 : 1) * compare(first, second) || a - b;
  });
  state.host.scrollTop = 0;
  state.drawn = "";
  fillRows(state);
}

function fillRows(state, printed = 0) {
  const { host, body, rows } = state;
  const first = printed ? 0 : Math.max(0, Math.floor(host.scrollTop / ROW_HEIGHT) - OVERSCAN);
  const last = Math.min(rows.length, printed || first + Math.ceil(host.clientHeight / ROW_HEIGHT) + 2 * OVERSCAN);
  const drawn = `${first} ${last} ${state.selected}`;
  if (drawn === state.drawn) return;
  state.drawn = drawn;
  const lines = [];
  for (let place = first; place < last; place++) lines.push(tableRow(state, place));
  body.replaceChildren(pad(first), ...lines, pad(printed ? 0 : rows.length - last));
  // Widths may only grow: columns that jump while one scrolls cannot be read.
  for (const cell of state.headings) cell.style.minWidth = `${cell.offsetWidth}px`;
}

function pad(rows) {
  const cell = make("td");
  cell.style.height = `${rows * ROW_HEIGHT}px`;
  return make("tr", { class: "pad", "aria-hidden": "true" }, cell);
}

function tableRow(state, place) {
  const row = state.rows[place];
  const cells = state.columns.map((column) => {
    const kind = [column.right ? "right" : "", column.bad?.(row) ? "bad" : ""].join(" ").trim();
    return make("td", kind ? { class: kind } : {}, column.text(row));
  });
  const marks = { "data-place": place, "aria-rowindex": place + 2, "aria-selected": String(row === state.selected) };
  return make("tr", row === raw.best ? { ...marks, class: "best" } : marks, ...cells);
}

function select(state, place) {
  state.selected = state.rows[place];
  fillRows(state);
  const row = state.selected;
  const facts = [
    ...metrics.map((metric) => [metric.name, short(metric.values[row])]),
    ["ended", STATUS[trials.status[row]]],
    ["reason", trials.reason(row)],
    ["time", duration(trials.seconds[row])],
    ["chosen by", trials.chosenBy(row)],
    ...settingsOf(row).map(([parameter, text]) => [parameter.name, text]),
  ].filter(([, text]) => text && text !== "-");
  const list = facts.map(([name, text]) => make("div", {}, make("dt", {}, name), make("dd", {}, text)));
  document.getElementById("trial-detail").replaceChildren(make("h3", {}, `Trial ${trials.number[row]}`), make("dl", {}, ...list));
}

function reveal({ host }, place) {
  const top = place * ROW_HEIGHT;
  const room = host.clientHeight - 3 * ROW_HEIGHT;
  if (top < host.scrollTop) host.scrollTop = top;
  else if (top > host.scrollTop + room) host.scrollTop = top - room;
}

function tableTools(state) {
  const hint = `Filter, e.g. ${algorithm ? algorithm.choices[0] : "done"} or ${metrics[0].name}>0.9`;
  const search = make("input", { type: "search", placeholder: hint, "aria-label": "Filter trials", maxlength: "200" });
  const total = make("span", { class: "count", role: "status" });
  const say = () => {
    const all = count.toLocaleString("en");
    total.textContent = state.rows.length === count ? `${all} trials` : `${state.rows.length.toLocaleString("en")} of ${all}`;
  };
  let waiting = 0;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const wanted = filterOf(search.value, state.columns);
      state.rows = [...Array(count).keys()].filter(wanted);
      say();
      sortRows(state);
    }, 120);
  });
  say();
  document.getElementById("trials-tools").append(search, total);
}

let rowTexts = null;

// Every word must be found in a row; NAME>NUMBER, NAME<NUMBER and NAME=VALUE look at one column.
function filterOf(text, columns) {
  const tests = text.toLowerCase().split(/\s+/).filter(Boolean).map((word) => {
    const [, name, sign, wanted] = /^(.+?)(<=|>=|<|>|=)(.+)$/.exec(word) ?? [];
    const column = name && columnCalled(name, columns);
    if (!column) {
      rowTexts ??= Array.from({ length: count }, (_, row) => searchText(row, columns));
      return (row) => rowTexts[row].includes(word);
    }
    if (sign === "=") return (row) => column.text(row).toLowerCase() === wanted;
    const limit = Number(wanted);
    const holds = { "<": (v) => v < limit, ">": (v) => v > limit, "<=": (v) => v <= limit, ">=": (v) => v >= limit }[sign];
    return (row) => holds(column.key(row));
  });
  return (row) => tests.every((test) => test(row));
}

// A column, or a hyperparameter that has none of its own.
function columnCalled(name, columns) {
  const called = (one) => one.name.toLowerCase() === name || one.own?.toLowerCase() === name;
  const found = columns.find(called);
  const hidden = found ? null : parameters.find(called);
  return found ?? (hidden && { text: hidden.text, key: (row) => hidden.values[row] });
}

const searchText = (row, columns) => columns.map((column) => column.text(row)).join(" ").toLowerCase();
