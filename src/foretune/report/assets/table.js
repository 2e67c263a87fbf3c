// All trials in a table that builds only the rows in view, so that 46,000 are as quick as 30.

const OVERSCAN = 8;
const ROW_HEIGHT = 32; // as the style sheet has it

function drawTable(host) {
  const columns = tableColumns();
  const headings = columns.map((column, index) => heading(column, () => sortBy(state, index)));
  const body = make("tbody");
  const state = { host, columns, headings, body, rows: allRows(), sorted: -1, down: false, selected: -1 };
  host.append(make("table", { role: "grid", "aria-rowcount": count + 1 }, make("thead", {}, make("tr", {}, ...headings)), body));
  document.getElementById("trials-tools").append(...filterTools(state));
  sortBy(state, columns.findIndex(({ best }) => best));
  host.addEventListener("scroll", () => requestAnimationFrame(() => fillRows(state)));
  host.addEventListener("click", ({ target }) => {
    const row = target.closest("tr[data-place]");
    if (row) select(state, Number(row.dataset.place));
  });
  host.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || event.target !== host) return;
    event.preventDefault();
    select(state, Math.max(0, Math.min(state.rows.indexOf(state.selected) + step, state.rows.length - 1)));
  });
  addEventListener("beforeprint", () => fillRows(state, 50));
}

// Each column: its name, the text of a row, the key to sort by, and how it looks.
function tableColumns() {
  const ofParameter = (index) => {
    const { own: name, owner, text, values, choices } = parameters[index];
    return { name, owner, text, key: (row) => values[row], kind: choices.length ? "" : "right" };
  };
  const ofMetric = ({ name, values, sign }) => ({
    name, text: (row) => short(values[row]), key: (row) => values[row], kind: "right", best: sign > 0 ? "ascending" : "descending",
  });
  const ofText = (name, text, kind = "") => ({ name, text, key: text, kind });
  const ended = (row) => [STATUS[trials.status[row]], trials.reason(row)].filter(Boolean).join(": ");
  const rest = raw.rest.map((index) => parameters[index]);
  const settings = (row) => settingsOf(row, rest).map(([one, value]) => `${one.own}=${value}`).join(", ");
  return [
    { name: "trial", text: (row) => String(trials.number[row]), key: (row) => trials.number[row], kind: "right" },
    ...metrics.map(ofMetric),
    trials.status.some(Boolean) && { ...ofText("ended", ended), isBad },
    raw.curves && { name: "last step", text: (row) => short(lastStep(row)), key: lastStep, kind: "right" },
    trials.seconds.some(isKnown) && { name: "time", text: (row) => duration(trials.seconds[row]), key: (row) => trials.seconds[row], kind: "right" },
    ...raw.columns.map(ofParameter),
    rest.length && ofText("other settings", settings, "unprinted"),
    raw.chosen.known.some(Boolean) && ofText("chosen by", trials.chosenBy),
  ].filter(Boolean);
}

function heading({ name, owner, kind }, onClick) {
  const button = make("button", { type: "button" }, ...(owner ? [make("small", {}, owner)] : []), name);
  button.addEventListener("click", onClick);
  return make("th", { scope: "col", "aria-sort": "none", class: kind }, button);
}

// The first click on a metric brings the best to the top, another one turns the order.
function sortBy(state, index) {
  state.down = state.sorted === index ? !state.down : state.columns[index].best === "descending";
  state.sorted = index;
  state.headings.forEach((cell, place) => {
    cell.setAttribute("aria-sort", place !== index ? "none" : state.down ? "descending" : "ascending");
  });
  sortRows(state);
}

function sortRows(state) {
  const keys = allRows().map(state.columns[state.sorted].key);
  const unknown = (key) => key === "" || !isKnown(key);
  const turn = state.down ? -1 : 1;
  // What is unknown comes last in both directions; equal ones stay in the order of the trials.
  state.rows.sort((a, b) => {
    const [first, second] = [keys[a], keys[b]];
    if (unknown(first) || unknown(second)) return unknown(first) - unknown(second) || a - b;
    return first < second ? -turn : first > second ? turn : a - b;
  });
  state.host.scrollTop = 0;
  fillRows(state);
}

function fillRows(state, printed = 0) {
  const { host, body, rows } = state;
  const first = printed ? 0 : Math.max(0, Math.floor(host.scrollTop / ROW_HEIGHT) - OVERSCAN);
  const last = Math.min(rows.length, printed || first + Math.ceil(host.clientHeight / ROW_HEIGHT || 16) + 2 * OVERSCAN);
  const lines = [];
  for (let place = first; place < last; place++) lines.push(tableRow(state, place));
  body.replaceChildren(pad(first), ...lines, pad(printed ? 0 : rows.length - last));
  // Widths may only grow: columns that jump while one scrolls cannot be read.
  const widths = state.headings.map((cell) => cell.offsetWidth);
  state.headings.forEach((cell, index) => { cell.style.minWidth = `${widths[index]}px`; });
}

function pad(rows) {
  const cell = make("td");
  cell.style.height = `${rows * ROW_HEIGHT}px`;
  return make("tr", { class: "pad", "aria-hidden": "true" }, cell);
}

function tableRow({ rows, columns, selected }, place) {
  const row = rows[place];
  const cells = columns.map(({ kind, isBad: bad, text }) => make("td", { class: bad?.(row) ? "bad" : kind }, text(row)));
  const marks = { "data-place": place, "aria-rowindex": place + 2, "aria-selected": row === selected };
  return make("tr", { ...marks, class: row === raw.best ? "best" : "" }, ...cells);
}

function select(state, place) {
  const { host, rows } = state;
  const row = rows[place];
  state.selected = row;
  const room = host.clientHeight - 3 * ROW_HEIGHT; // scrolled no further than the row needs
  host.scrollTop = Math.max(place * ROW_HEIGHT - room, Math.min(host.scrollTop, place * ROW_HEIGHT));
  fillRows(state);
  const facts = [
    ...metrics.map(({ name, values }) => [name, short(values[row])]),
    ["ended", STATUS[trials.status[row]]],
    ["reason", trials.reason(row)],
    ["last step", raw.curves ? short(lastStep(row)) : ""],
    ["time", duration(trials.seconds[row])],
    ["chosen by", trials.chosenBy(row)],
    ...settingsOf(row, parameters).map(([{ name }, text]) => [name, text]),
  ];
  const list = facts.filter(([, text]) => text && text !== "-");
  document.getElementById("trial-detail").replaceChildren(
    make("h3", {}, `Trial ${trials.number[row]}`),
    make("dl", {}, ...list.map(([name, text]) => make("div", {}, make("dt", {}, name), make("dd", {}, text)))),
  );
}

// A row is kept when each word is found somewhere in it.
function filterTools(state) {
  const search = make("input", { type: "search", placeholder: "Filter by words", "aria-label": "Filter trials by words" });
  const everything = `${whole.format(count)} ${count > 1 ? "trials" : "trial"}`;
  const total = make("span", { class: "count", role: "status" }, everything);
  let texts = null;
  let waiting = 0;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      texts ??= allRows().map((row) => state.columns.map(({ text }) => text(row)).join(" ").toLowerCase());
      const wanted = search.value.toLowerCase().split(/\s+/);
      state.rows = allRows().filter((row) => wanted.every((word) => texts[row].includes(word)));
      total.textContent = `${whole.format(state.rows.length)} of ${everything}`;
      sortRows(state);
    }, 120);
  });
  return [search, total];
}
