// The report of a run: how long each iteration took, how long it waited, and what it moved.
const data = JSON.parse(document.getElementById("data").textContent);
const iterations = data.iterations;
const canvas = by("picture"), context = canvas.getContext("2d");
const PHASE_FILLS = {
  "in memory": [COLOURS.forward, "plain"], "demand paging": [COLOURS.other, "dots"], learning: [COLOURS.optimizer, "rising"],
  planned: [COLOURS.device, "plain"],
};
const seconds = (value) => timeText(value * 1e9);
const LANES = [
  { name: "Time", height: 150, high: (one) => one.seconds, unit: seconds },
  { name: "To the device", height: 46, high: (one) => one.moved_in_bytes, unit: sizeText },
  { name: "From the device", height: 46, high: (one) => one.moved_out_bytes, unit: sizeText },
  { name: "Page faults", height: 36, high: (one) => one.faults, unit: (value) => `${value}` },
];
const GUTTER = 110, TITLE = 16, GAP = 9;
const lanes = LANES.map((lane) => ({ ...lane, most: d3.max(iterations, lane.high) || 0 })).filter((lane) => lane.most > 0);
let cursor = null, box = { x: 0, width: 0 }, each = 1;

function layOut() {
  const narrow = canvas.clientWidth < 640, width = canvas.clientWidth, density = window.devicePixelRatio || 1;
  box = { x: narrow ? 6 : GUTTER, width: width - (narrow ? 6 : GUTTER) - 8 };
  let y = 6;
  for (const lane of lanes) {
    if (narrow) y += TITLE;
    lane.y = y;
    y += lane.height + GAP;
  }
  canvas.style.height = `${y + 20}px`;
  canvas.width = Math.round(width * density);
  canvas.height = Math.round((y + 20) * density);
  context.setTransform(density, 0, 0, density, 0, 0);
  each = box.width / Math.max(1, iterations.length);
}

const xOf = (i) => box.x + i * each;

// Iterations that share a pixel are one bar, as high as the highest.
function drawLane(lane) {
  const perPixel = Math.max(1, Math.ceil(1 / each)), bottom = lane.y + lane.height, scale = lane.height / (1.08 * lane.most);
  const wide = Math.max(1, each * perPixel - (each > 4 ? 1 : 0));
  let seen = 0;
  for (let first = 0; first < iterations.length; first += perPixel) {
    const some = iterations.slice(first, first + perPixel), top = some[d3.scan(some, (a, b) => lane.high(b) - lane.high(a))];
    const height = lane.high(top) * scale, [shade, pattern] = PHASE_FILLS[top.phase] ?? [COLOURS.other, "plain"];
    context.fillStyle = fillOf(context, shade, pattern);
    context.fillRect(xOf(first), bottom - height, wide, height);
    if (lane === lanes[0] && top.waited_seconds > 0) {
      context.fillStyle = COLOURS.wait;
      const waited = Math.min(height, top.waited_seconds * scale);
      context.fillRect(xOf(first), bottom - height, wide, waited);
    }
    seen += some.length;
  }
  return seen;
}

function draw() {
  const width = canvas.clientWidth, drawn = { iterations: 0 };
  context.fillStyle = ink.paper;
  context.fillRect(0, 0, width, canvas.clientHeight);
  context.font = '12px system-ui, "DejaVu Sans", sans-serif';
  context.textBaseline = "middle";
  for (const lane of lanes) {
    context.fillStyle = ink.lane;
    context.fillRect(box.x, lane.y, box.width, lane.height);
    drawn.iterations = drawLane(lane);
    context.fillStyle = ink.text;
    if (box.x > 20) {
      context.textAlign = "right";
      context.fillText(lane.name, box.x - 8, lane.y + Math.min(14, lane.height / 2));
      context.textAlign = "left";
    } else {
      context.fillText(lane.name, box.x, lane.y - 8);
    }
    label(context, `up to ${lane.unit(lane.most)}`, box.x + 5, lane.y + 9);
  }
  drawAxis();
  if (cursor !== null && lanes.length > 0) {
    context.strokeStyle = ink.mark;
    context.strokeRect(xOf(cursor), lanes[0].y - 1, Math.max(2, each), lanes[lanes.length - 1].y + lanes[lanes.length - 1].height - lanes[0].y + 2);
  }
  window.spillwayDrawn = drawn;
}

function drawAxis() {
  if (lanes.length === 0) return;
  const last = lanes[lanes.length - 1], y = last.y + last.height + 12;
  const step = Math.max(1, Math.ceil(iterations.length / Math.max(1, Math.floor(box.width / 60))));
  context.fillStyle = ink.soft;
  for (let i = 0; i < iterations.length; i += step) {
    const text = `${i + 1}`, wide = context.measureText(text).width;
    context.fillText(text, Math.min(box.x + box.width - wide, xOf(i) + Math.max(0, (each - wide) / 2)), y);
  }
}

let waiting = false;
function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; draw(); });
}

function showCursor() {
  if (cursor === null) return by("cursor-text").replaceChildren(element("p", "Move the pointer over the bars, or the arrow keys."));
  const one = iterations[cursor];
  by("cursor-text").replaceChildren(element("p", [
    element("b", `Iteration ${cursor + 1}`),
    ` (${one.phase}): ${seconds(one.seconds)}, of which some thread waited ${seconds(one.waited_seconds)}; ${one.faults} page faults; ` +
      `${sizeText(one.moved_in_bytes)} came to the device, ${sizeText(one.moved_out_bytes)} left it; ` +
      `${one.planned_operators} of ${one.operators} operators as planned.`]));
}

function goTo(i) {
  if (iterations.length === 0) return;
  cursor = Math.max(0, Math.min(iterations.length - 1, i));
  showCursor();
  redraw();
}

function resize() {
  layOut();
  draw();
}

function showHead() {
  const count = data.iteration_count;
  by("title").textContent = count > 0 ? `A run of ${count} iteration${count === 1 ? "" : "s"}` : "A run";
  const tiers = [["device", data.peak_device_bytes, data.unlimited ? null : data.device_budget_bytes], ["host", data.peak_host_bytes, null], ["SSD", data.peak_ssd_bytes, null]]
    .filter(([, peak]) => peak > 0).map(([name, peak, most]) => `${name} ${sizeText(peak)}${most === null ? "" : ` of ${sizeText(most)}`}`);
  by("summary").append(element("b", seconds(data.wall_seconds)), ` on ${data.gpu === null ? data.device : data.gpu.name} under the policy ${data.policy}; it ended with status ${data.exit_status}. `,
    tiers.length > 0 ? `Peak: ${tiers.join(", ")}. ` : "", data.stall_seconds > 0 && data.advice?.kind !== "waits" ? `Some thread waited ${seconds(data.stall_seconds)} for memory. ` : "");
  const notes = [data.error, data.advice && `${data.advice.sentence}.`, data.no_plan_because, ...data.notices].filter((text) => text);
  by("notes").append(...notes.map((text) => noteElement(text[0].toUpperCase() + text.slice(1))));
  canvas.setAttribute("aria-label", `${by("title").textContent}: the time of each. The tables below say the same.`);
  if (lanes.length === 0) for (const id of ["figure", "keys"]) by(id).remove();
}

function showTables() {
  const add = (rows, ...rest) => rows.length > 0 && by("figures").append(table(...rest, rows));
  add(data.phases.map((one) => [one.name, `${one.iterations}`, seconds(one.seconds_per_iteration), `${one.faults_per_iteration}`, `${one.operators_per_iteration}`]),
    "Phases, with the medians of their iterations", [["phase", ""], ["iterations", "number"], ["time", "number"], ["page faults", "number"], ["operators", "number"]]);
  add(data.most_moved_tensors.map((one) => [one.name ?? "(no name)", one.made_by ?? "", sizeText(one.bytes), sizeText(one.moved_bytes), sizeText(one.waited_for_bytes)]),
    "Tensors that moved most", [["tensor", ""], ["made by", ""], ["size", "number"], ["moved", "number"], ["of it waited for", "number"]]);
  add(Object.entries(data.moved_bytes).filter(([, bytes]) => bytes > 0).map(([link, bytes]) => [link.replaceAll("_", " ").replace("ssd", "SSD"), sizeText(bytes)]),
    "What moved in the whole run", [["way", ""], ["bytes", "number"]]);
  const plan = data.plan;
  if (plan !== null)
    add([["policy", plan.policy], ["followed since iteration", `${plan.followed_since_iteration}`],
         ["predicted", seconds(plan.predicted_seconds)], ["made in", seconds(plan.planning_seconds)], ["plans after the first", `${data.replans}`],
         ...(plan.given_up_because === null ? [] : [["given up", `at iteration ${plan.given_up_at_iteration}: ${plan.given_up_because.replaceAll("_", " ")}`]])],
      "The last plan", [["", ""], ["", ""]]);
  add(data.predictions.map((one) => [sizeText(one.device_memory_bytes), one.seconds_per_iteration === null ? "not to be had" : seconds(one.seconds_per_iteration), one.policy ?? "nothing would move"]),
    "Predicted with less memory", [["device memory", "number"], ["an iteration", "number"], ["policy", ""]]);
}

const KEYS = {
  ArrowLeft: () => goTo((cursor ?? iterations.length) - 1), ArrowRight: () => goTo((cursor ?? -1) + 1), Home: () => goTo(0), End: () => goTo(iterations.length - 1),
};
canvas.addEventListener("keydown", (event) => {
  if (!KEYS[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  KEYS[event.key]();
});
canvas.addEventListener("pointermove", (event) => goTo(Math.floor((event.clientX - canvas.getBoundingClientRect().left - box.x) / each)));
window.addEventListener("resize", resize);
window.addEventListener("beforeprint", () => { readColours(); resize(); });
const dark = window.matchMedia("(prefers-color-scheme: dark)");
dark.addEventListener("change", () => { readColours(); redraw(); });

for (const [phase, fill] of Object.entries(PHASE_FILLS)) if (iterations.some((one) => one.phase === phase)) addToLegend(phase, ...fill);
if (iterations.some((one) => one.waited_seconds > 0)) addToLegend("some thread waited", COLOURS.wait, "plain");
readColours();
showHead();
showCursor();
showTables();
if (lanes.length > 0) resize();
window.spillwayData = { iterations: iterations.length };
