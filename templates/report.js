"use strict";
// What every page has: state in the address, theme, strategy chooser, tables that sort, filter and page, copying.
// Names from the model reach the page as textContent, or escaped where plotly reads them as markup.
const page = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const rowsShown = 100;
  const all = (selector, from = document) => Array.from(from.querySelectorAll(selector));
  const numbers = new Intl.NumberFormat("en-US");

  // State in the URL hash: strategy, step range, axis, selected step, filter and order of the operators table.
  const hash = new URLSearchParams(location.hash.slice(1));
  const remember = (key, value) => {
    if (value === null || value === "") hash.delete(key); else hash.set(key, value);
    const text = hash.toString();
    try { history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search); } catch { /* sandboxed */ }
  };

  // The parts of the page tell each other: "theme", "strategy", "step" (detail: its number, or null).
  const tell = (what, detail) => document.dispatchEvent(new CustomEvent(what, { detail }));
  const hear = (what, then) => document.addEventListener(what, (event) => then(event.detail));

  // Theme.
  const isDark = () => getComputedStyle(root).colorScheme === "dark";
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("spillprof-theme", root.dataset.theme); } catch { /* no storage here */ }
    tell("theme");
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => tell("theme"));

  // Strategy chooser.
  let tablesReady = false;
  let shown = Number((document.querySelector("[data-view]:not([hidden])") || { dataset: { view: 0 } }).dataset.view);
  function setUpTables() {
    for (const box of all("[data-view]:not([hidden]) [data-table]:not([data-ready])")) {
      box.dataset.ready = "true";
      setUp(box);
    }
  }
  function show(index) {
    for (const view of all("[data-view]")) view.hidden = view.dataset.view !== String(index);
    for (const button of all("[data-strategy]")) button.setAttribute("aria-pressed", String(button.dataset.strategy === String(index)));
    shown = Number(index);
    if (tablesReady) setUpTables();
    tell("strategy");
  }
  for (const button of all("[data-strategy]")) {
    button.addEventListener("click", () => {
      show(button.dataset.strategy);
      remember("strategy", data.strategies[button.dataset.strategy]);
    });
  }
  const wanted = (data.strategies || []).indexOf(hash.get("strategy"));
  if (wanted >= 0) show(wanted);
  for (const link of all("nav a")) {
    link.addEventListener("click", (event) => {
      // Every strategy has its own sections: go to those of the one that is shown.
      const id = link.hash.slice(1);
      const target = all(`[id^="${id}"]`).find((node) => node.offsetParent !== null);
      if (!target) return;
      event.preventDefault();
      target.scrollIntoView();
      target.tabIndex = -1;
      target.focus({ preventScroll: true });
    });
  }

  // Tables.
  function cellText(column, value) {
    if (value === null) return "-";
    if (column.factor === undefined) return column.kind === "count" ? numbers.format(value) : String(value);
    if (value === 0) return "0";
    const scaled = value / column.factor;
    const least = 10 ** -column.decimals;
    if (scaled > 0 && scaled < least / 2) return `<${least.toFixed(column.decimals)} ${column.unit}`;
    const digits = { minimumFractionDigits: column.decimals, maximumFractionDigits: column.decimals };
    return `${scaled.toLocaleString("en-US", digits).replace("-", "−")} ${column.unit}`;
  }
  function csvCell(value) {
    if (typeof value === "number") return String(value);
    const text = value === null ? "" : String(value);
    const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
  }
  function compare(a, b) {
    if (a === null || b === null) return (a === null) - (b === null);
    return typeof a === "number" ? a - b : String(a).localeCompare(String(b), "en");
  }
  function setUp(box) {
    const key = box.dataset.table;
    const { columns, rows } = data.tables[key];
    const isOperators = key.endsWith("/operators");
    const opensSteps = isOperators && document.getElementById("step") !== null;
    const [body, head] = [box.querySelector("tbody"), box.querySelector("thead tr")];
    const [filter, status] = [box.querySelector("[data-filter]"), box.querySelector("[data-status]")];
    const words = rows.map((row) => row.filter((v, i) => columns[i].kind === "text" && v !== null).join("\n").toLowerCase());
    let order = null; // [column, ascending]; null: as written, dearest first
    let first = 0;

    function chosen() {
      const text = filter.value.trim().toLowerCase();
      const kept = rows.map((_, i) => i).filter((i) => !text || words[i].includes(text));
      if (order) {
        const [column, ascending] = order;
        const sign = ascending ? 1 : -1;
        kept.sort((a, b) => {
          const [x, y] = [rows[a][column], rows[b][column]];
          return (x === null || y === null ? compare(x, y) : sign * compare(x, y)) || a - b;
        });
      }
      return kept;
    }
    function update() {
      const kept = chosen();
      first = Math.max(0, Math.min(first, Math.floor((kept.length - 1) / rowsShown) * rowsShown));
      const fresh = kept.slice(first, first + rowsShown).map((i) => {
        const tr = document.createElement("tr");
        rows[i].forEach((value, c) => {
          const td = tr.insertCell();
          td.textContent = cellText(columns[c], value);
          if (columns[c].kind === "text") td.className = columns[c].name ? "text name" : "text";
          if (columns[c].kind === "size" && value !== null) td.title = `${numbers.format(value)} B`;
        });
        if (opensSteps) makeStepButton(tr);
        return tr;
      });
      body.replaceChildren(...fresh);
      report(kept.length);
    }
    function makeStepButton(tr) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "step-link";
      button.textContent = tr.cells[0].textContent;
      button.title = "What is on-chip at this step";
      const step = Number(button.textContent.replaceAll(",", ""));
      tr.cells[0].replaceChildren(button);
      tr.addEventListener("click", () => { if (!String(getSelection())) tell("pick", step); });
    }
    function report(count) {
      const last = Math.min(first + rowsShown, count);
      const of = count < rows.length ? ` (of ${numbers.format(rows.length)})` : "";
      status.textContent = count ? `${numbers.format(first + 1)} to ${numbers.format(last)} of ${numbers.format(count)}${of}` : `nothing matches${of}`;
      const [before, after] = all("[data-page]", box);
      before.disabled = first === 0;
      after.disabled = last >= count;
      before.parentElement.hidden = count <= rowsShown;
    }
    columns.forEach((column, c) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.textContent = column.title;
      button.addEventListener("click", () => {
        const ascending = order && order[0] === c ? !order[1] : column.kind === "text" || column.title.endsWith("step");
        sortBy(c, ascending);
        first = 0;
        update();
        if (isOperators) remember("sort", `${c}${ascending ? "a" : "d"}`);
      });
      head.cells[c].replaceChildren(button);
    });
    function sortBy(c, ascending) {
      order = [c, ascending];
      for (const th of head.cells) th.removeAttribute("aria-sort");
      head.cells[c].setAttribute("aria-sort", ascending ? "ascending" : "descending");
    }
    filter.addEventListener("input", () => {
      first = 0;
      update();
      if (isOperators) remember("filter", filter.value.trim());
    });
    for (const button of all("[data-page]", box)) {
      button.addEventListener("click", () => { first += rowsShown * Number(button.dataset.page); update(); });
    }
    box.querySelector("[data-csv]").addEventListener("click", (event) => {
      const lines = [columns.map((c) => csvCell(c.title + (c.kind === "size" ? "_bytes" : c.kind === "time" ? "_s" : ""))), ...chosen().map((i) => rows[i].map(csvCell))];
      copy(lines.map((line) => line.join(",")).join("\n") + "\n", event.currentTarget);
    });
    const sort = /^(\d+)([ad])$/.exec((isOperators && hash.get("sort")) || "");
    if (sort && Number(sort[1]) < columns.length) sortBy(Number(sort[1]), sort[2] === "a");
    if (isOperators && hash.get("filter")) filter.value = hash.get("filter");
    if (order || filter.value || !body.rows.length) update(); else { if (opensSteps) all("tr", body).forEach(makeStepButton); report(rows.length); }
  }
  tablesReady = true;
  setUpTables();

  // Copy, and keys.
  async function copy(text, button) {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    const label = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 1500);
  }
  for (const button of all("[data-copy]")) {
    button.addEventListener("click", () => copy(document.getElementById(button.dataset.copy).textContent, button));
  }
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input")) return;
    const filter = all("[data-filter]").find((node) => node.offsetParent !== null && !node.closest("details:not([open])"));
    if (filter) { event.preventDefault(); filter.focus(); }
  });
  // Columns of the data, and how sizes and times are written.
  const unpacked = new WeakMap();
  function unpack(column) {
    if (Array.isArray(column)) return column;
    if (!unpacked.has(column)) {
      const bytes = Uint8Array.from(atob(column.bdata), (c) => c.charCodeAt(0));
      const types = { i1: Int8Array, u1: Uint8Array, i2: Int16Array, u2: Uint16Array, i4: Int32Array, u4: Uint32Array, f4: Float32Array, f8: Float64Array };
      unpacked.set(column, new types[column.dtype](bytes.buffer));
    }
    return unpacked.get(column);
  }
  function written(value, units) {
    if (value === 0) return "0";
    const [unit, factor] = units.findLast(([, least]) => Math.abs(value) >= least * 0.9995) || units[0];
    const scaled = value / factor;
    return `${numbers.format(Number(scaled.toFixed(scaled >= 99.95 ? 0 : scaled >= 9.995 ? 1 : 2)))} ${unit}`;
  }
  const size = (bytes) => written(bytes, [["B", 1], ["KiB", 1024], ["MiB", 1024 ** 2], ["GiB", 1024 ** 3], ["TiB", 1024 ** 4]]);
  const time = (seconds) => written(seconds, [["ns", 1e-9], ["µs", 1e-6], ["ms", 1e-3], ["s", 1]]);

  root.dataset.ready = "true";
  return { all, copy, data, hash, hear, numbers, remember, root, size, tell, time, unpack, get view() { return shown; } };
})();

