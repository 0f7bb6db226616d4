// One step: what runs, what it waited for and forced out, what is on-chip, what is away. Opened by a click or a key.
const steps = (() => {
  const { all, data, hash, hear, numbers, remember, size, tell, time, unpack } = page;
  const panel = document.getElementById("step");
  const most = 24; // rows of a list
  const ticks = 3; // phases of a step: read, compute, write
  let step = null;
  let opener = null;
  if (!panel || !data.views) return null;

  const find = (name) => panel.querySelector(`[data-step-${name}]`);
  const slider = find("slider");
  const names = data.buffers.names;
  const sizes = unpack(data.buffers.sizes);
  const kinds = unpack(data.buffers.kinds);
  const flow = data.dataflow && operands(data.dataflow);

  // Who writes and who reads each buffer, and what each step writes and reads.
  function operands({ writer, readers, ends }) {
    const [writers, flat, until] = [unpack(writer), unpack(readers), unpack(ends)];
    const readersOf = (b) => flat.subarray(b ? until[b - 1] : 0, until[b]);
    const [reads, writes] = [0, 1].map(() => Array.from({ length: data.n_steps }, () => []));
    writers.forEach((i, b) => {
      if (i >= 0) writes[i].push(b);
      for (const reader of readersOf(b)) reads[reader].push(b);
    });
    return { writers, readersOf, reads, writes };
  }
  const nextUse = (buffer, from) => flow && buffer < flow.writers.length ? flow.readersOf(buffer).find((i) => i > from) : undefined;
  const columns = (table) => Object.fromEntries(Object.entries(table).map(([key, column]) => [key, column.bdata === undefined ? column : unpack(column)]));
  const views = data.views.map((view) => ({ residencies: columns(view.residencies), spills: columns(view.spills), streams: columns(view.streams), waits: new Map(view.waits.map((wait) => [wait[0], wait])) }));

  function residents(view, i) {
    const { buffer, start, end } = view.residencies;
    const [from, to] = [ticks * i, ticks * (i + 1)];
    const found = [];
    for (let k = 0; k < buffer.length; k++) if (start[k] < to && end[k] > from) found.push({ buffer: buffer[k], start: start[k], end: end[k] });
    return found.sort((a, b) => sizes[b.buffer] - sizes[a.buffer] || a.buffer - b.buffer);
  }
  const spills = (view, chosen) => Array.from(view.spills.buffer.keys()).filter(chosen).sort((a, b) => sizes[view.spills.buffer[b]] - sizes[view.spills.buffer[a]]);

  const element = (tag, text, className) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  const count = (n, what) => `${numbers.format(n)} ${what}${n === 1 ? "" : "s"}`;
  const named = (b) => names[b] || "(no name)";
  const listed = (found, name) => `${found.slice(0, 4).map(name).join(", ")}${found.length > 4 ? ` and ${numbers.format(found.length - 4)} more` : ""}`;
  const link = (i) => `step ${numbers.format(i)}`;

  // What happens, in sentences.
  function sentences(view, i) {
    const { spills: s } = view;
    const told = [];
    const clock = charts.clocks[page.view];
    if (clock) told.push(`Starts ${time(clock.time(i))} into the run.`);
    const wait = view.waits.get(i);
    if (wait) told.push(`The compute unit waits ${time(wait[1])} before it, for ${wait[2]}.`);
    const table = data.tables[`${page.view}/operators`];
    const row = table && table.rows.find((cells) => cells[0] === i);
    if (row) {
      const cell = (title) => row[table.columns.findIndex((column) => column.title === title)];
      const parts = [["written back", cell("written")], ["reloaded", cell("reloaded")], ["streamed", cell("streamed")]].filter(([, bytes]) => bytes);
      if (parts.length) told.push(`Because of this step ${parts.map(([what, bytes]) => `${size(bytes)} are ${what}`).join(", ")}${cell("cause") ? `; cause: ${cell("cause")}` : ""}.`);
    }
    const out = spills(view, (k) => s.evict[k] === i && s.needed[k] > i && !(s.moved[k] & 4)); // 4: streamed, never here
    if (out.length) told.push(`Sent away before it: ${listed(out, (k) => `${named(s.buffer[k])} (needed again at ${link(s.needed[k])}, ${s.moved[k] & 1 ? "written back" : "a copy was in DRAM"})`)}.`);
    const back = spills(view, (k) => s.needed[k] === i && s.moved[k] & 2);
    if (back.length) told.push(`Brought back for it: ${listed(back, (k) => `${named(s.buffer[k])} (away since ${link(s.evict[k])})`)}.`);
    const { streams } = view;
    const tiled = Array.from(streams.step.keys()).filter((k) => streams.step[k] === i);
    if (tiled.length) told.push(`Too large for the memory: passes ${listed(tiled, (k) => `${named(streams.buffer[k])} (${size(streams.size[k])} ${streams.out[k] ? "out" : "in"})`)} through DRAM in tiles.`);
    if (!out.length && !back.length && !tiled.length) told.push("No spill begins or ends here.");
    return told;
  }
  function stateOf(resident, i) {
    if (flow && flow.writes[i].includes(resident.buffer)) return ["written here", "used"];
    if (flow && flow.reads[i].includes(resident.buffer)) return ["read here", "used"];
    if (resident.start > ticks * i) return ["arrives", "waits"];
    const next = nextUse(resident.buffer, i);
    return next === undefined ? ["on-chip", "waits"] : [`waits for ${link(next)}`, "waits"];
  }
  function bar(name, bytes, state, style) {
    const row = element("li");
    const label = element("span", name.length > 34 ? `${name.slice(0, 14)}…${name.slice(-19)}` : name, "bar-name");
    label.title = name;
    const track = element("span", undefined, "bar-track");
    const filled = element("span", undefined, `bar-fill bar-${style}`);
    filled.style.width = `${Math.max(100 * Math.min(bytes / data.capacity_bytes, 1), 0.5)}%`;
    track.append(filled);
    row.append(label, track, element("span", size(bytes), "bar-size"), element("span", state, "bar-state"));
    return row;
  }
  function rest(list, found, shown) {
    if (found.length <= shown) return;
    const bytes = found.slice(shown).reduce((sum, item) => sum + item.bytes, 0);
    list.append(element("li", `and ${numbers.format(found.length - shown)} more, ${size(bytes)}`, "bar-rest"));
  }
  function fullest(found, i) {
    const phases = [0, 1, 2].map((p) => found.reduce((sum, r) => sum + (r.start <= ticks * i + p && r.end > ticks * i + p ? sizes[r.buffer] : 0), 0));
    return Math.max(...phases);
  }

  function render() {
    const view = views[page.view];
    const found = residents(view, step).map((r) => ({ ...r, bytes: sizes[r.buffer] }));
    const away = spills(view, (k) => view.spills.evict[k] <= step && step < view.spills.needed[k]).map((k) => ({ k, bytes: sizes[view.spills.buffer[k]] }));
    find("title").textContent = `Step ${numbers.format(step)} of ${numbers.format(data.n_steps)}`;
    find("name").textContent = data.names[step] === undefined ? "" : `${data.names[step] || "(no name)"} · ${data.types[step]}`;
    find("facts").replaceChildren(...sentences(view, step).map((text) => element("li", text)));
    const here = find("here");
    here.replaceChildren(...found.slice(0, most).map((r) => bar(named(r.buffer), r.bytes, ...stateOf(r, step))));
    rest(here, found, most);
    const held = fullest(found, step);
    const reserved = data.reserved_bytes ? `, beside ${size(data.reserved_bytes)} reserved` : "";
    const known = view.residencies.buffer.length < view.residencies.total ? " Only the largest residencies of this run are in this page." : "";
    find("held").textContent = view.residencies.total
      ? `${count(found.length, "buffer")}, ${size(held)} of ${size(data.capacity_bytes)} at once${reserved}.${known}`
      : "The profile was saved without events, so it does not say what lay where.";
    const gone = find("away");
    gone.replaceChildren(...away.slice(0, most).map(({ k, bytes }) => bar(named(view.spills.buffer[k]), bytes, `back for ${link(view.spills.needed[k])}`, "away")));
    rest(gone, away, most);
    find("gone").textContent = away.length ? `${count(away.length, "spilled buffer")}, ${size(away.reduce((sum, a) => sum + a.bytes, 0))}, still to be read.` : "Nothing that is still to be read is away.";
    slider.value = String(step);
    slider.setAttribute("aria-valuetext", `step ${step}: ${data.names[step] || ""}`);
  }
  // Steps that cost something, ascending: where the keys jump to.
  const costly = () => Array.from(new Set([...((data.tables[`${page.view}/operators`] || {}).rows || []).map((row) => row[0]), ...views[page.view].waits.keys()])).sort((a, b) => a - b);

  function pick(wanted) {
    step = wanted === null ? null : Math.min(Math.max(wanted, 0), data.n_steps - 1);
    panel.hidden = step === null;
    document.body.classList.toggle("with-panel", step !== null);
    remember("step", step);
    if (step !== null) render();
    tell("step", step);
  }
  function close() {
    pick(null);
    if (opener && opener.isConnected) opener.focus({ preventScroll: true });
  }
  slider.max = String(data.n_steps - 1);
  slider.addEventListener("input", () => pick(Number(slider.value)));
  find("close").addEventListener("click", close);
  for (const button of all("[data-step-by]", panel)) {
    button.addEventListener("click", () => {
      const by = Number(button.dataset.stepBy);
      if (Math.abs(by) === 1) return pick(step + by);
      const candidates = costly();
      const next = by > 0 ? candidates.find((i) => i > step) : candidates.findLast((i) => i < step);
      if (next !== undefined) pick(next);
    });
  }
  for (const button of all("[data-step-open]")) {
    button.addEventListener("click", () => {
      opener = button;
      const dearest = (data.tables[`${page.view}/operators`] || { rows: [] }).rows[0];
      if (step === null) pick(dearest ? dearest[0] : 0);
      slider.focus();
    });
  }
  addEventListener("keydown", (event) => { if (event.key === "Escape" && step !== null) close(); });
  hear("pick", (wanted) => {
    opener = document.activeElement;
    pick(wanted);
  });
  hear("strategy", () => { if (step !== null) render(); });
  const asked = /^\d+$/.test(hash.get("step") || "") ? Number(hash.get("step")) : null;
  if (asked !== null && asked < data.n_steps) pick(asked);
  return { flow, names, sizes, kinds, views, get chosen() { return step; } };
})();
