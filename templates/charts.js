// Charts, drawn when seen. Those on the steps of a run share one zoom and one marker, in steps or in time.
const charts = (() => {
  const { all, data, hash, hear, remember, root, tell, unpack } = page;
  const margin = { l: 52, r: 12, t: 28, b: 38 };
  const drawn = new Map(); // element -> key
  const inView = new Set();
  const stale = new Set(); // drawn, but not in view when something changed
  const steps = Math.max(data.n_steps || 0, 1);
  const clocks = (data.views || []).map((view) => view.times && clock(view.times));
  let inTime = hash.get("x") === "time" && clocks.some(Boolean);
  let range = parseRange(hash.get("steps")); // in steps, whatever the axis
  let marked = null;
  let syncing = false;

  function loadPlotly() {
    // Text until now, so that reading tables does not wait for the chart library.
    if (window.Plotly) return;
    const script = document.createElement("script");
    script.textContent = document.getElementById("plotly").textContent;
    document.head.append(script);
    script.remove(); // it has run
  }
  function parseRange(text) {
    const ends = (text || "").split("-").map(Number);
    return ends.length === 2 && ends.every(Number.isFinite) && ends[0] < ends[1] ? ends : null;
  }

  // Steps and seconds of one strategy: the start of every stride-th step, straight lines between.
  function clock({ stride, at }) {
    const knots = unpack(at);
    const last = knots.length - 1;
    const stepOf = (k) => (k < last ? k * stride : steps);
    return {
      time(step) {
        if (Number.isNaN(step)) return NaN; // between two arcs
        const k = Math.max(Math.min(Math.floor(step / stride), last - 1), 0);
        const share = Math.min(Math.max((step - stepOf(k)) / (stepOf(k + 1) - stepOf(k)), 0), 1);
        return knots[k] + share * (knots[k + 1] - knots[k]);
      },
      step(seconds) {
        let [low, high] = [0, last];
        while (high - low > 1) {
          const middle = (low + high) >> 1;
          if (knots[middle] <= seconds) low = middle; else high = middle;
        }
        const span = knots[high] - knots[low];
        const share = span > 0 ? Math.min(Math.max((seconds - knots[low]) / span, 0), 1) : 0;
        return stepOf(low) + share * (stepOf(high) - stepOf(low));
      },
    };
  }
  const axisOf = (key) => data.figures[key].axis;
  const clockOf = (key) => clocks[Number(key.split("/")[0])];
  const showsTime = (key) => inTime && axisOf(key) !== "run" && Boolean(clockOf(key));
  // From steps to what the chart's axis counts, and back.
  const toAxis = (key, step) => (showsTime(key) ? clockOf(key).time(step) / data.time_unit.factor : step);
  const toStep = (key, x) => (showsTime(key) ? clockOf(key).step(x * data.time_unit.factor) : x);
  // Round numbers, the same in all charts: plotly would take the places of bars.
  function ticksOf(key) {
    const [low, high] = rangeOf(key);
    const rough = Math.max((high - low) / Math.max(innerWidth / 110, 4), showsTime(key) ? 0 : 0.5);
    const power = 10 ** Math.floor(Math.log10(rough));
    const dtick = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough * 0.999);
    return { tickmode: "linear", tick0: 0, dtick };
  }
  // What the first step waits for belongs to it.
  const rangeOf = (key) => (range || [0, steps]).map((step) => (step > 0 ? toAxis(key, step) : 0));

  // A trace with its x moved to the axis that is shown.
  function placed(key, trace) {
    const given = axisOf(key);
    if (!given || (given !== "time" && !showsTime(key))) return trace;
    const factor = data.time_unit.factor;
    const move = given === "time" ? (showsTime(key) ? (s) => s / factor : clockOf(key).step) : (step) => toAxis(key, step);
    const x = Array.from(unpack(trace.x));
    if (trace.type !== "bar") return { ...trace, x: x.map(move) };
    if (trace.base) {
      const base = Array.from(unpack(trace.base));
      const starts = base.map(move);
      const words = trace.hovertemplate.replace("steps %{base:.0f} to %{x:.0f}", `%{base:.4~g} to %{x:.4~g} ${data.time_unit.unit}`);
      return { ...trace, base: starts, x: x.map((length, i) => move(base[i] + length) - starts[i]), hovertemplate: words };
    }
    const ends = x.map((middle) => [move(middle - trace.width / 2), move(middle + trace.width / 2)]);
    return { ...trace, x: ends.map(([a, b]) => (a + b) / 2), width: ends.map(([a, b]) => b - a) };
  }
  const forPlotly = (text) => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
  function tracesOf(key) {
    return data.figures[key].data.map((trace) => {
      if (trace.meta !== "names") return placed(key, trace);
      const names = Array.from(unpack(trace.x), (step) => forPlotly(data.names[step] === undefined ? "end" : `step ${step}: ${data.names[step]}, ${data.types[step]}`));
      return { ...placed(key, trace), customdata: names, hovertemplate: "%{y:.2f} MiB<br>%{customdata}" };
    });
  }
  function theme() {
    const css = getComputedStyle(root);
    const color = (name) => css.getPropertyValue(name).trim();
    return { ink: color("--ink"), muted: color("--muted"), line: color("--line"), ground: color("--ground"), font: css.getPropertyValue("--sans") };
  }
  function marker(key) {
    if (marked === null || !axisOf(key) || axisOf(key) === "run") return [];
    const x = toAxis(key, marked + 0.5);
    return [{ type: "line", xref: "x", yref: "paper", x0: x, x1: x, y0: 0, y1: 1, line: { color: theme().ink, width: 1, dash: "dot" } }];
  }
  function layoutOf(key, node) {
    const look = theme();
    const own = data.figures[key].layout;
    const axis = { gridcolor: look.line, linecolor: look.line, zerolinecolor: look.muted, fixedrange: true, automargin: false };
    const shared = Boolean(axisOf(key));
    const coarse = matchMedia("(pointer: coarse)").matches;
    const layout = {
      ...own,
      xaxis: { ...axis, ...own.xaxis, fixedrange: !shared || coarse },
      yaxis: { ...axis, ...own.yaxis },
      font: { family: look.font, size: 12, color: look.muted },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      margin: { ...margin, l: key.endsWith("/live") ? 110 : margin.l },
      legend: { orientation: "h", x: 0, y: 1, yanchor: "bottom", font: { size: 12 }, ...own.legend },
      hoverlabel: { bgcolor: look.ground, bordercolor: look.line, font: { color: look.ink, family: look.font, size: 12 }, align: "left" },
      dragmode: shared && !coarse ? "zoom" : false,
      showlegend: true,
    };
    if (own.annotations) layout.annotations = own.annotations.map((words) => ({ ...words, bgcolor: look.ground, opacity: 0.9, borderpad: 1 }));
    if (own.yaxis2) layout.yaxis2 = { ...axis, ...own.yaxis2 };
    layout.xaxis.title = { ...own.xaxis.title, standoff: 6 };
    if (shared) {
      Object.assign(layout.xaxis, ticksOf(key), { range: rangeOf(key) });
      layout.xaxis.title.text = showsTime(key) ? `time, ${data.time_unit.unit}` : "step";
      layout.shapes = marker(key);
    }
    if (!own.height) layout.height = node.clientHeight || 240;
    return layout;
  }

  function draw(node) {
    const key = node.dataset.figure;
    if (drawn.has(node) || !data.figures[key] || node.offsetParent === null) return;
    drawn.set(node, key);
    loadPlotly();
    Plotly.newPlot(node, tracesOf(key), layoutOf(key, node), { responsive: true, displaylogo: false, displayModeBar: false, doubleClick: false });
    if (!axisOf(key)) return;
    node.on("plotly_relayout", (change) => {
      if (syncing || change["xaxis.range[0]"] === undefined) return;
      zoom([change["xaxis.range[0]"], change["xaxis.range[1]"]].map((x) => toStep(key, x)), key);
    });
    node.on("plotly_doubleclick", () => zoom(null, key));
    node.addEventListener("click", (event) => {
      // Where in the drawing, whatever lies there: the margins are fixed.
      const box = node.getBoundingClientRect();
      const share = (event.clientX - box.left - margin.l) / (box.width - margin.l - margin.r);
      if (share < 0 || share > 1 || event.clientY - box.top < margin.t) return;
      const [low, high] = node.layout.xaxis.range;
      tell("pick", Math.min(Math.max(Math.floor(toStep(key, low + share * (high - low))), 0), steps - 1));
    });
  }
  const isShown = (node) => node.offsetParent !== null;
  // What is in view changes at once, the rest when there is time, what is hidden when it is shown.
  function change(update) {
    syncing = true;
    const moves = [];
    for (const [node, key] of drawn) {
      if (!axisOf(key) && update !== restyle) continue;
      if (inView.has(node) && isShown(node) && !stale.has(node)) moves.push(update(node, key)); else stale.add(node);
    }
    whenIdle(refreshOne);
    return Promise.all(moves).finally(() => { syncing = false; });
  }
  const whenIdle = (then) => (window.requestIdleCallback ? requestIdleCallback(then, { timeout: 500 }) : setTimeout(then, 50));
  function refresh(node) {
    if (stale.has(node) && isShown(node) && stale.delete(node)) redraw(node, drawn.get(node));
  }
  function refreshOne() {
    const node = Array.from(stale).sort((a, b) => inView.has(b) - inView.has(a)).find(isShown);
    if (!node) return;
    refresh(node);
    whenIdle(refreshOne);
  }
  const redraw = (node, key) => Plotly.react(node, tracesOf(key), layoutOf(key, node));
  const restyle = (node, key) => Plotly.relayout(node, layoutOf(key, node));
  function zoom(to, key) {
    const fine = key && showsTime(key);
    const [down, up] = fine ? [(x) => Math.floor(100 * x) / 100, (x) => Math.ceil(100 * x) / 100] : [Math.floor, Math.ceil];
    range = to && to[1] - to[0] > 0 ? [Math.max(down(to[0]), 0), Math.min(up(to[1]), steps)] : null;
    remember("steps", range && `${range[0]}-${range[1]}`);
    return change((node, own) => Plotly.relayout(node, { "xaxis.range": rangeOf(own), "xaxis.dtick": ticksOf(own).dtick }));
  }
  // By button: about the step that is marked, else the middle; a move keeps the width.
  function zoomBy(factor, shift) {
    const [low, high] = range || [0, steps];
    const width = Math.min(Math.max((high - low) * factor, 1), steps);
    const middle = factor !== 1 && marked !== null && marked >= low && marked < high ? marked + 0.5 : (low + high) / 2 + shift * width;
    const start = Math.min(Math.max(Math.round(middle - width / 2), 0), steps - Math.ceil(width));
    return zoom(width >= steps ? null : [start, start + Math.ceil(width)]);
  }
  function setAxis(time) {
    inTime = time;
    remember("x", time ? "time" : null);
    for (const button of all("[data-axis]")) button.setAttribute("aria-pressed", String((button.dataset.axis === "time") === time));
    return change(redraw);
  }

  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) draw(entry.target);
  }, { rootMargin: "400px" });
  const here = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) inView.add(target); else inView.delete(target);
      if (isIntersecting) refresh(target);
    }
  });
  for (const node of all("[data-figure]")) { seen.observe(node); here.observe(node); }
  for (const button of all("[data-reset]")) button.addEventListener("click", () => zoom(null));
  for (const button of all("[data-zoom]")) button.addEventListener("click", () => zoomBy(Number(button.dataset.zoom), 0));
  for (const button of all("[data-pan]")) button.addEventListener("click", () => zoomBy(1, Number(button.dataset.pan)));
  for (const button of all("[data-axis]")) button.addEventListener("click", () => setAxis(button.dataset.axis === "time"));
  if (inTime) setAxis(true);
  addEventListener("beforeprint", () => {
    all("[data-figure]").forEach(draw);
    stale.forEach(refresh);
  });
  hear("theme", () => change(restyle));
  hear("strategy", () => {
    for (const node of drawn.keys()) if (isShown(node)) { if (stale.has(node)) refresh(node); else Plotly.Plots.resize(node); }
  });
  hear("step", (step) => {
    marked = step;
    change((node, key) => Plotly.relayout(node, { shapes: marker(key) }));
  });
  whenIdle(loadPlotly);
  return { clocks, zoom };
})();
