// The graph of steps: whole if it is small, else around the step that was picked or the dearest. Spilled edges carry
// bytes and cause. Laid out by dagre, drawn as SVG.
(() => {
  const { all, data, hear, numbers, size, tell } = page;
  const box = document.getElementById("graph-box");
  if (!box || !steps || !steps.flow) return;
  const svgNs = "http://www.w3.org/2000/svg";
  const [whole, around, width, height] = [60, 32, 168, 40]; // steps drawn, and the size of one
  const { flow, names, sizes, views } = steps;
  const status = document.querySelector("[data-graph-status]");
  let view = { x: 0, y: 0, scale: 1 };
  let svg = null;
  let drawnFor = null;

  function loadDagre() {
    if (window.dagre) return;
    const script = document.createElement("script");
    script.textContent = document.getElementById("graph-library").textContent;
    document.head.append(script);
    script.remove(); // it has run
  }
  const rows = () => (data.tables[`${page.view}/operators`] || { rows: [] }).rows;
  const centre = () => (steps.chosen !== null ? steps.chosen : rows().length ? rows()[0][0] : 0);

  // What moves between the writing and the reading of a buffer by a step, by "buffer:step".
  function spilled() {
    const { spills, streams } = views[page.view];
    const found = new Map();
    const add = (b, i, bytes, cause) => {
      const gap = found.get(`${b}:${i}`) || { bytes: 0, cause };
      gap.bytes += bytes;
      found.set(`${b}:${i}`, gap);
    };
    spills.buffer.forEach((b, k) => {
      const moves = (spills.moved[k] & 1) + ((spills.moved[k] >> 1) & 1);
      if (moves) add(b, spills.needed[k], sizes[b] * moves, data.views[page.view].causes[spills.cause[k]]);
    });
    streams.buffer.forEach((b, k) => {
      const first = flow.readersOf(b)[0];
      if (!streams.out[k]) add(b, streams.step[k], streams.size[k], "oversized");
      else if (first !== undefined) add(b, first, streams.size[k], "oversized");
    });
    return found;
  }
  // Steps to draw: all, or those nearest to the centre, neighbours over spilled edges first.
  function chosen(gaps) {
    if (data.n_steps <= whole) return Array.from({ length: data.n_steps }, (_, i) => i);
    const kept = new Set([centre()]);
    let rim = [centre()];
    const { spills } = views[page.view];
    const victims = Array.from(spills.buffer.keys()).filter((k) => spills.evict[k] === centre());
    for (const k of victims.slice(0, 4)) {
      for (const i of [flow.writers[spills.buffer[k]], spills.needed[k]]) if (i >= 0 && i < data.n_steps) { kept.add(i); rim.push(i); }
    }
    while (rim.length && kept.size < around) {
      const next = [];
      for (const i of rim) {
        const near = [];
        for (const b of flow.reads[i]) if (flow.writers[b] >= 0) near.push([gaps.has(`${b}:${i}`), flow.writers[b]]);
        for (const b of flow.writes[i]) for (const r of flow.readersOf(b).subarray(0, 6)) near.push([gaps.has(`${b}:${r}`), r]);
        near.sort((a, b) => b[0] - a[0] || Math.abs(a[1] - i) - Math.abs(b[1] - i));
        for (const [, j] of near) if (!kept.has(j) && kept.size < around) { kept.add(j); next.push(j); }
      }
      rim = next;
    }
    return Array.from(kept).sort((a, b) => a - b);
  }
  function edgesOf(kept, gaps) {
    const inside = new Set(kept);
    const edges = new Map();
    for (const i of kept) {
      for (const b of flow.reads[i]) {
        const from = flow.writers[b];
        if (!inside.has(from)) continue;
        const gap = gaps.get(`${b}:${i}`);
        const key = `${from}:${i}`;
        const edge = edges.get(key) || { from, to: i, buffers: [], bytes: 0, cause: null, most: 0 };
        edge.buffers.push(b);
        if (gap) {
          edge.bytes += gap.bytes;
          if (gap.bytes > edge.most) [edge.cause, edge.most] = [gap.cause, gap.bytes];
        }
        edges.set(key, edge);
      }
    }
    return Array.from(edges.values());
  }

  const node = (tag, attributes, text) => {
    const made = document.createElementNS(svgNs, tag);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const cut = (text, most) => (text.length > most ? `${text.slice(0, most / 2 - 1)}…${text.slice(1 - most / 2)}` : text);
  function curve(points) {
    const middle = (a, b) => `${(a.x + b.x) / 2} ${(a.y + b.y) / 2}`;
    let path = `M${points[0].x} ${points[0].y}`;
    for (let i = 1; i < points.length - 1; i++) path += ` Q${points[i].x} ${points[i].y} ${i === points.length - 2 ? `${points[i + 1].x} ${points[i + 1].y}` : middle(points[i], points[i + 1])}`;
    return points.length === 2 ? `${path} L${points[1].x} ${points[1].y}` : path;
  }

  function draw() {
    const wanted = `${page.view}:${data.n_steps <= whole ? "" : centre()}`;
    if (drawnFor === wanted) return mark();
    drawnFor = wanted;
    loadDagre();
    const gaps = spilled();
    const kept = chosen(gaps);
    const edges = edgesOf(kept, gaps);
    const layout = new dagre.graphlib.Graph();
    layout.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 30, marginx: 12, marginy: 12 });
    layout.setDefaultEdgeLabel(() => ({}));
    for (const i of kept) layout.setNode(String(i), { width, height });
    for (const edge of edges) layout.setEdge(String(edge.from), String(edge.to), edge.bytes ? { width: 58, height: 16, labelpos: "r", labeloffset: 8 } : {});
    dagre.layout(layout);
    const cost = new Map(rows().map((row) => [row[0], row[3]]));
    const most = Math.max(1, ...edges.map((edge) => edge.bytes));
    const drawing = node("g", {});
    for (const edge of edges) {
      const place = layout.edge(String(edge.from), String(edge.to));
      const thick = edge.bytes ? 1.5 + 5 * Math.sqrt(edge.bytes / most) : 1;
      const line = node("path", { d: curve(place.points), class: edge.bytes ? `edge spilled edge-${edge.cause}` : "edge", "stroke-width": thick.toFixed(1) });
      line.append(node("title", {}, `${edge.buffers.map((b) => `${names[b] || "(no name)"}, ${size(sizes[b])}`).join("; ")}${edge.bytes ? `. Moved: ${size(edge.bytes)}, ${edge.cause}` : ""}`));
      drawing.append(line);
      const end = place.points[place.points.length - 1];
      drawing.append(node("path", { d: `M${end.x} ${end.y} l-4 -7 l8 0 Z`, class: edge.bytes ? `head edge-${edge.cause}` : "head" }));
    }
    for (const edge of edges) {
      if (!edge.bytes) continue;
      const { x, y } = layout.edge(String(edge.from), String(edge.to));
      drawing.append(node("text", { x, y: y + 4, class: "edge-label" }, size(edge.bytes)));
    }
    for (const i of kept) {
      const { x, y } = layout.node(String(i));
      const group = node("g", { class: cost.get(i) ? "op costly" : "op", transform: `translate(${(x - width / 2).toFixed(1)} ${(y - height / 2).toFixed(1)})`, tabindex: "0", role: "button", "data-node": String(i), "aria-pressed": "false" });
      const spill = cost.get(i) ? `, ${size(cost.get(i))} of spills` : "";
      const shown = [cut(data.names[i] || "(no name)", 24), `${numbers.format(i)} · ${cut(data.types[i], 14)}${cost.get(i) ? ` · ${size(cost.get(i))}` : ""}`];
      group.append(node("rect", { width, height, rx: 5 }), node("text", { x: 9, y: 16, class: "op-name" }, shown[0]), node("text", { x: 9, y: 32, class: "op-kind" }, shown[1]));
      group.append(node("title", {}, `step ${i}: ${data.names[i] || "(no name)"}, ${data.types[i]}${spill}`));
      drawing.append(group);
    }
    svg = node("svg", { role: "group", "aria-label": "Graph of steps; each box opens what is on-chip there" });
    svg.append(drawing);
    box.replaceChildren(svg);
    const { width: w, height: h } = layout.graph();
    const fit = Math.min(box.clientWidth / w, box.clientHeight / h, 1);
    const at = layout.node(String(kept.includes(centre()) ? centre() : kept[0]));
    const scale = Math.max(fit, 1);
    view = fit === scale ? { scale, x: (box.clientWidth - w * scale) / 2, y: (box.clientHeight - h * scale) / 2 } : { scale, x: box.clientWidth / 2 - at.x * scale, y: box.clientHeight / 3 - at.y * scale };
    box.whole = { w, h };
    place();
    mark();
    const spilledEdges = edges.filter((edge) => edge.bytes);
    const bytes = spilledEdges.reduce((sum, edge) => sum + edge.bytes, 0);
    const part = data.n_steps <= whole ? `All ${numbers.format(kept.length)} steps` : `${numbers.format(kept.length)} of ${numbers.format(data.n_steps)} steps, those around step ${numbers.format(centre())}`;
    status.textContent = `${part}; ${spilledEdges.length ? `${numbers.format(spilledEdges.length)} of the ${numbers.format(edges.length)} edges spill, ${size(bytes)} in all` : `none of the ${numbers.format(edges.length)} edges spills`}.`;
  }
  function place() {
    svg.firstChild.setAttribute("transform", `translate(${view.x.toFixed(1)} ${view.y.toFixed(1)}) scale(${view.scale.toFixed(3)})`);
  }
  function mark() {
    for (const op of all(".op", box)) op.setAttribute("aria-pressed", String(Number(op.dataset.node) === steps.chosen));
  }
  function zoom(by, x = box.clientWidth / 2, y = box.clientHeight / 2) {
    const scale = Math.min(Math.max(view.scale * by, 0.05), 4);
    const real = scale / view.scale;
    view = { scale, x: x - (x - view.x) * real, y: y - (y - view.y) * real };
    place();
  }
  function fitAll() {
    const scale = Math.min(box.clientWidth / box.whole.w, box.clientHeight / box.whole.h, 1.5);
    view = { scale, x: (box.clientWidth - box.whole.w * scale) / 2, y: (box.clientHeight - box.whole.h * scale) / 2 };
    place();
  }

  let held = null;
  box.addEventListener("pointerdown", (event) => { held = { x: event.clientX - view.x, y: event.clientY - view.y, moved: false, from: [event.clientX, event.clientY] }; });
  box.addEventListener("pointermove", (event) => {
    if (!held || !event.buttons) return;
    if (!held.moved && Math.hypot(event.clientX - held.from[0], event.clientY - held.from[1]) < 4) return;
    if (!held.moved) box.setPointerCapture(event.pointerId);
    held.moved = true;
    view.x = event.clientX - held.x;
    view.y = event.clientY - held.y;
    place();
  });
  box.addEventListener("click", (event) => {
    const op = event.target.closest("[data-node]");
    if (op && !(held && held.moved)) tell("pick", Number(op.dataset.node));
  });
  box.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.altKey) return; // a bare wheel scrolls the page
    event.preventDefault();
    const frame = box.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 300), event.clientX - frame.left, event.clientY - frame.top);
  }, { passive: false });
  box.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] };
    const op = event.target.closest("[data-node]");
    if (op && (event.key === "Enter" || event.key === " ")) tell("pick", Number(op.dataset.node));
    else if (moves[event.key]) { view.x += moves[event.key][0]; view.y += moves[event.key][1]; place(); }
    else if (event.key === "+" || event.key === "=") zoom(1.25);
    else if (event.key === "-") zoom(0.8);
    else return;
    event.preventDefault();
  });
  // A box that gets the focus by key is brought into view.
  box.addEventListener("focusin", (event) => {
    const op = event.target.closest("[data-node]");
    if (!op || !op.matches(":focus-visible")) return;
    const [a, b] = [op.getBoundingClientRect(), box.getBoundingClientRect()];
    if (a.left >= b.left && a.right <= b.right && a.top >= b.top && a.bottom <= b.bottom) return;
    view.x += (b.left + b.right - a.left - a.right) / 2;
    view.y += (b.top + b.bottom - a.top - a.bottom) / 2;
    place();
  });
  for (const button of all("[data-graph-zoom]")) button.addEventListener("click", () => (button.dataset.graphZoom === "fit" ? fitAll() : zoom(Number(button.dataset.graphZoom))));

  let seen = false;
  new IntersectionObserver((entries) => {
    seen = entries[entries.length - 1].isIntersecting;
    if (seen) draw();
  }, { rootMargin: "200px" }).observe(box);
  const update = () => { if (seen) draw(); };
  hear("strategy", update);
  hear("step", update);
  addEventListener("beforeprint", draw);
})();
