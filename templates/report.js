"use strict";
// The page's only script: strategy chooser, charts drawn when seen, tables that sort, filter and page.
// Names from the model reach the page as textContent, or escaped where plotly reads them as markup.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const page = 100;
  const all = (selector, from = document) => Array.from(from.querySelectorAll(selector));
  const numbers = new Intl.NumberFormat("en-US");

  // State in the URL hash: strategy, step range, filter and order of the operators table.
  const hash = new URLSearchParams(location.hash.slice(1));
  const remember = (key, value) => {
    if (value === null || value === "") hash.delete(key); else hash.set(key, value);
    const text = hash.toString();
    try { history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search); } catch { /* sandboxed */ }
  };

  // Theme.
  const isDark = () => getComputedStyle(root).colorScheme === "dark";
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("spillprof-theme", root.dataset.theme); } catch { /* no storage here */ }
    restyle();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => restyle());

  // Charts.
  const drawn = new Map(); // element -> key
  function loadPlotly() {
    // Text until now, so that reading tables does not wait for the chart library.
    const library = document.getElementById("plotly");
    if (window.Plotly || !library) return; // not every page has charts
    const script = document.createElement("script");
    script.textContent = library.textContent;
    document.head.append(script);
  }
  const whole = [0, Math.max(data.n_steps, 1)];
  let range = parseRange(hash.get("steps"));
  let syncing = false;

  function parseRange(text) {
    const ends = (text || "").split("-").map(Number);
    return ends.length === 2 && ends.every(Number.isFinite) && ends[0] < ends[1] ? ends : null;
  }
  const forPlotly = (text) => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
  function unpack(column) {
    if (Array.isArray(column)) return column;
    const bytes = Uint8Array.from(atob(column.bdata), (c) => c.charCodeAt(0));
    const types = { i1: Int8Array, u1: Uint8Array, i2: Int16Array, u2: Uint16Array, i4: Int32Array, u4: Uint32Array, f4: Float32Array, f8: Float64Array };
    return Array.from(new types[column.dtype](bytes.buffer));
  }
  function theme() {
    const css = getComputedStyle(root);
    const color = (name) => css.getPropertyValue(name).trim();
    return { ink: color("--ink"), muted: color("--muted"), line: color("--line"), ground: color("--ground"), font: css.getPropertyValue("--sans") };
  }
  const hasOwnAxis = (key) => key.endsWith("/live") || key.endsWith("/roofline"); // other than the steps that the rest shares
  function layoutOf(key, node) {
    const look = theme();
    const own = data.figures[key].layout;
    const axis = { gridcolor: look.line, linecolor: look.line, zerolinecolor: look.muted, fixedrange: true, automargin: false };
    const shared = data.n_steps !== undefined && !hasOwnAxis(key);
    const coarse = matchMedia("(pointer: coarse)").matches;
    const layout = {
      ...own,
      xaxis: { ...axis, ...own.xaxis, fixedrange: !shared || coarse },
      yaxis: { ...axis, ...own.yaxis },
      font: { family: look.font, size: 12, color: look.muted },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: key.endsWith("/live") ? 110 : 52, r: 12, t: 28, b: 38 },
      legend: { orientation: "h", x: 0, y: 1, yanchor: "bottom", font: { size: 12 } },
      hoverlabel: { bgcolor: look.ground, bordercolor: look.line, font: { color: look.ink, family: look.font, size: 12 }, align: "left" },
      dragmode: shared && !coarse ? "zoom" : false,
      showlegend: true,
    };
    layout.xaxis.title = { ...own.xaxis.title, standoff: 6 };
    if (shared && range) layout.xaxis.range = range.slice();
    if (!own.height) layout.height = node.clientHeight || 240;
    return layout;
  }
  function draw(node) {
    const key = node.dataset.figure;
    if (drawn.has(node) || !data.figures[key] || node.offsetParent === null) return;
    drawn.set(node, key);
    loadPlotly();
    const traces = data.figures[key].data.map((trace) => {
      if (trace.meta !== "names") return trace;
      const names = unpack(trace.x).map((step) => forPlotly(data.names[step] || "end"));
      return { ...trace, customdata: names, hovertemplate: "%{y:.2f} MiB<br>%{customdata}" };
    });
    Plotly.newPlot(node, traces, layoutOf(key, node), { responsive: true, displaylogo: false, displayModeBar: false, doubleClick: false });
    node.on("plotly_relayout", (change) => {
      if (syncing || change["xaxis.range[0]"] === undefined) return;
      zoom([change["xaxis.range[0]"], change["xaxis.range[1]"]]);
    });
    node.on("plotly_doubleclick", () => zoom(null));
  }
  function zoom(to) {
    range = to && to[1] - to[0] > 0 ? [Math.max(Math.floor(to[0]), 0), Math.min(Math.ceil(to[1]), whole[1])] : null;
    remember("steps", range && `${range[0]}-${range[1]}`);
    syncing = true;
    const moves = Array.from(drawn).filter(([, key]) => !hasOwnAxis(key))
      .map(([node]) => Plotly.relayout(node, { "xaxis.range": (range || whole).slice() }));
    Promise.all(moves).finally(() => { syncing = false; });
  }
  function restyle() {
    for (const [node, key] of drawn) Plotly.relayout(node, layoutOf(key, node));
  }
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) draw(entry.target);
  }, { rootMargin: "400px" });
  for (const node of all("[data-figure]")) seen.observe(node);
  for (const button of all("[data-reset]")) button.addEventListener("click", () => zoom(null));
  addEventListener("beforeprint", () => all("[data-figure]").forEach(draw));

  // Strategy chooser.
  let tablesReady = false;
  function setUpTables() {
    for (const box of all("[data-view]:not([hidden]) [data-table]:not([data-ready])")) {
      box.dataset.ready = "true";
      setUp(box);
    }
  }
  function show(index) {
    for (const view of all("[data-view]")) view.hidden = view.dataset.view !== String(index);
    for (const button of all("[data-strategy]")) button.setAttribute("aria-pressed", String(button.dataset.strategy === String(index)));
    all(`[data-view="${index}"] .js-plotly-plot`).forEach((node) => Plotly.Plots.resize(node));
    if (tablesReady) setUpTables();
  }
  for (const button of all("[data-strategy]")) {
    button.addEventListener("click", () => {
      show(button.dataset.strategy);
      remember("strategy", data.strategies[button.dataset.strategy]);
    });
  }
  const wanted = data.strategies.indexOf(hash.get("strategy"));
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
      first = Math.max(0, Math.min(first, Math.floor((kept.length - 1) / page) * page));
      const fresh = kept.slice(first, first + page).map((i) => {
        const tr = document.createElement("tr");
        rows[i].forEach((value, c) => {
          const td = tr.insertCell();
          td.textContent = cellText(columns[c], value);
          if (columns[c].kind === "text") td.className = columns[c].name ? "text name" : "text";
          if (columns[c].kind === "size" && value !== null) td.title = `${numbers.format(value)} B`;
        });
        return tr;
      });
      body.replaceChildren(...fresh);
      report(kept.length);
    }
    function report(count) {
      const last = Math.min(first + page, count);
      const of = count < rows.length ? ` (of ${numbers.format(rows.length)})` : "";
      status.textContent = count ? `${numbers.format(first + 1)} to ${numbers.format(last)} of ${numbers.format(count)}${of}` : `nothing matches${of}`;
      const [before, after] = all("[data-page]", box);
      before.disabled = first === 0;
      after.disabled = last >= count;
      before.parentElement.hidden = count <= page;
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
      button.addEventListener("click", () => { first += page * Number(button.dataset.page); update(); });
    }
    box.querySelector("[data-csv]").addEventListener("click", (event) => {
      const lines = [columns.map((c) => csvCell(c.title + (c.kind === "size" ? "_bytes" : c.kind === "time" ? "_s" : ""))), ...chosen().map((i) => rows[i].map(csvCell))];
      copy(lines.map((line) => line.join(",")).join("\n") + "\n", event.currentTarget);
    });
    const sort = /^(\d+)([ad])$/.exec((isOperators && hash.get("sort")) || "");
    if (sort && Number(sort[1]) < columns.length) sortBy(Number(sort[1]), sort[2] === "a");
    if (isOperators && hash.get("filter")) filter.value = hash.get("filter");
    if (order || filter.value || !body.rows.length) update(); else report(rows.length);
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
    const filter = all("[data-filter]").find((node) => node.offsetParent !== null);
    if (filter) { event.preventDefault(); filter.focus(); }
  });
  root.dataset.ready = "true";
  (window.requestIdleCallback || setTimeout)(loadPlotly);
})();
