// The picture: memory, kernels, waits, links and the life of the selected tensor over time, on one canvas.
const canvas = document.getElementById("picture");
const context = canvas.getContext("2d");
const whole = Math.max(1, data.iteration);
const full = d3.scaleLinear().domain([0, whole]);
let scale = full.copy();   // the time in sight, to pixels
let cursor = null;         // the moment under the pointer
let selected = null;       // {tensor} and/or {kernel}, {transfer}
let life = null;           // of the selected tensor: {spans, kernels, transfers}
let lanes = [];
let width = 0;
const GUTTER_WIDE = 150, TITLE = 15;

const kernelSpans = (of) => ({
  count: of.length,
  begin: (i) => kernels.start[of[i]],
  end: (i) => kernels.end[of[i]],
  fill: (i) => COLOURS[kernels.phase[of[i]]],
  name: (i) => kernelText(of[i]),
});
const waitSpans = (of) => ({
  count: of.length,
  begin: (i) => kernels.ready[of[i]],
  end: (i) => kernels.start[of[i]],
  fill: (i) => fillOf(context, COLOURS.wait, CAUSE_PATTERNS[kernels.stall[of[i]]] ?? "dots"),
});
function transferSpans(row, link) {
  const tier = TIERS[link.to === 0 ? link.from : link.to];
  return {
    count: row.transfers.length,
    begin: (i) => transfers.begin[row.transfers[i]],
    end: (i) => transfers.end[row.transfers[i]],
    fill: () => (row.urgent ? COLOURS.wait : fillOf(context, COLOURS[tier], "plain")),
    name: (i) => (transfers.tensor[row.transfers[i]] === null ? "" : tensors.name[transfers.tensor[row.transfers[i]]]),
  };
}

// Lanes from top to bottom, with their places.
function layOut() {
  const narrow = canvas.clientWidth < 640;
  const left = narrow ? 6 : GUTTER_WIDE;
  width = canvas.clientWidth;
  const box = { x: left, width: width - left - 8 };
  lanes = [];
  let y = 24;  // below the axis
  const add = (kind, name, height, more = {}) => {
    if (narrow) y += TITLE;
    lanes.push({ kind, name, ...box, y, height, ...more });
    y += height + 7;
  };
  add("memory", "Memory", narrow ? 130 : 170);
  threads.forEach((one, i) => {
    const which = threads.length > 1 ? `, thread ${i + 1}` : "";
    add("kernels", `Kernels${which}`, 26, { spans: kernelSpans(one.kernels), of: one.kernels });
    if (one.waits.length > 0) add("waits", `Waits${which}`, 16, { spans: waitSpans(one.waits), of: one.waits });
  });
  for (const link of links)
    for (const row of link.rows)
      add("transfers", `${linkText(link.from, link.to)}${row.urgent ? ", urgent" : ""}`, 16,
          { spans: transferSpans(row, link), row });
  if (life) add("life", "Selected tensor", 18);
  const height = y + 4;
  const density = window.devicePixelRatio || 1;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * density);
  canvas.height = Math.round(height * density);
  context.setTransform(density, 0, 0, density, 0, 0);
  full.range([box.x, box.x + box.width]);
  scale.range(full.range());
}

function drawAxis() {
  const lane = lanes[0], bottom = lanes[lanes.length - 1];
  const [from, to] = scale.domain();
  const ticks = scale.ticks(Math.max(2, Math.floor(lane.width / 110)));
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (const at of ticks) {
    const x = scale(at);
    context.strokeStyle = ink.line;
    context.beginPath();
    context.moveTo(x, 20);
    context.lineTo(x, bottom.y + bottom.height);
    context.stroke();
    const text = momentText(at, to - from), half = context.measureText(text).width / 2;
    context.fillStyle = ink.soft;
    context.fillText(text, Math.max(half + 1, Math.min(width - half - 1, x)), 11);
  }
  context.textAlign = "left";
}

// What the iteration's marks say, as far as there is room: where one begins, where a plan is taken up.
function drawMarks() {
  const lane = lanes[0], bottom = lanes[lanes.length - 1], marks = data.marks;
  let free = -1;
  for (let i = 0; i < marks.at.length; ++i) {
    const x = scale(marks.at[i]);
    if (x < lane.x || x > lane.x + lane.width) continue;
    context.strokeStyle = ink.soft;
    context.setLineDash([2, 3]);
    context.beginPath();
    context.moveTo(x, lane.y);
    context.lineTo(x, bottom.y + bottom.height);
    context.stroke();
    context.setLineDash([]);
    const wide = context.measureText(marks.text[i]).width + 6;
    if (x < free || x + wide > lane.x + lane.width) continue;
    label(context, marks.text[i], x + 4, lane.y + 8);
    free = x + wide + 4;
  }
}

function drawMemory(lane) {
  const top = memoryTop(stackPeak, data.capacity[0]);
  const seen = drawStack(context, scale, lane, data, top);
  const y = heightOf(lane, top);
  const capacity = data.capacity[0];
  if (capacity !== null && capacity <= top) {
    const text = `the device holds ${sizeText(capacity)}`;
    context.strokeStyle = ink.mark;
    context.setLineDash([6, 4]);
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(lane.x, y(capacity));
    context.lineTo(lane.x + lane.width, y(capacity));
    context.stroke();
    context.setLineDash([]);
    context.lineWidth = 1;
    label(context, text, lane.x + lane.width - context.measureText(text).width - 8, y(capacity) + (y(capacity) - lane.y < 18 ? 10 : -10));
  }
  for (const bytes of byteTicks(top).slice(1)) {
    if (data.marks.at.length > 0 && y(bytes) < lane.y + 20) continue;  // There marks have their words.
    context.strokeStyle = ink.line;
    context.beginPath();
    context.moveTo(lane.x, y(bytes));
    context.lineTo(lane.x + 6, y(bytes));
    context.stroke();
    label(context, sizeText(bytes), lane.x + 8, y(bytes));
  }
  return seen;
}

const stackPeak = stackPeakOf(levels);

function byteTicks(top) {
  let step = 1;
  while (top / step > 4) step *= 2;
  return d3.range(0, 0.95 * top, step);
}

function drawTitle(lane) {
  context.fillStyle = ink.text;
  if (lane.x > 20) {
    context.textAlign = "right";
    context.fillText(lane.name, lane.x - 8, lane.y + Math.min(lane.height / 2, 14));
    context.textAlign = "left";
  } else {
    context.fillText(lane.name, lane.x, lane.y - 8);
  }
}

function outline(lane, begin, end) {
  const x0 = Math.max(lane.x, scale(begin)), x1 = Math.min(lane.x + lane.width, scale(end));
  if (x1 < lane.x || x0 > lane.x + lane.width) return;
  context.strokeStyle = ink.mark;
  context.lineWidth = 2;
  context.strokeRect(x0, lane.y - 1, Math.max(2, x1 - x0), lane.height + 2);
  context.lineWidth = 1;
}

function drawLife(lane) {
  for (const [begin, end, tier] of life.spans) {
    const x0 = Math.max(lane.x, scale(begin)), x1 = Math.min(lane.x + lane.width, scale(end));
    if (x1 <= x0) continue;
    context.fillStyle = fillOf(context, COLOURS[TIERS[tier]], TIER_PATTERNS[TIERS[tier]]);
    context.fillRect(x0, lane.y, x1 - x0, lane.height);
  }
  // Its uses: ticks through the lane.
  context.fillStyle = ink.mark;
  let before = -9;
  for (const k of life.kernels) {
    const x = scale(kernels.start[k]);
    if (x < lane.x || x > lane.x + lane.width || x - before < 1) continue;
    context.fillRect(x, lane.y - 3, 2, lane.height + 6);
    before = x;
  }
}

function draw() {
  const begun = performance.now();
  const drawn = { kernels: 0, waits: 0, transfers: 0, levels: 0 };
  context.fillStyle = ink.paper;
  context.fillRect(0, 0, width, canvas.height);
  context.font = '12px system-ui, "DejaVu Sans", sans-serif';
  drawAxis();
  for (const lane of lanes) {
    context.save();
    context.globalAlpha = 0.6;
    context.fillStyle = ink.lane;
    context.fillRect(lane.x, lane.y, lane.width, lane.height);
    context.globalAlpha = 1;
    context.beginPath();
    context.rect(lane.x, lane.y - 3, lane.width, lane.height + 6);
    context.clip();
    if (lane.kind === "memory") drawn.levels = drawMemory(lane);
    if (lane.spans) drawn[lane.kind] += drawSpans(context, scale, lane, lane.spans);
    if (lane.kind === "life") drawLife(lane);
    if (life && lane.kind === "kernels") for (const k of life.kernels) if (kernels.thread[k] === kernels.thread[lane.of[0]]) outline(lane, kernels.start[k], kernels.end[k]);
    if (life && lane.kind === "transfers")
      for (const i of life.transfers)
        if (transfers.from[i] === transfers.from[lane.row.transfers[0]] && transfers.to[i] === transfers.to[lane.row.transfers[0]] &&
            isUrgent(i) === lane.row.urgent)
          outline(lane, transfers.begin[i], transfers.end[i]);
    if (selected && selected.kernel !== undefined && lane.kind === "kernels" && kernels.thread[selected.kernel] === kernels.thread[lane.of[0]])
      outline(lane, kernels.ready[selected.kernel], kernels.end[selected.kernel]);
    context.restore();
    drawTitle(lane);
  }
  drawMarks();
  if (cursor !== null) {
    const x = scale(cursor), bottom = lanes[lanes.length - 1];
    context.strokeStyle = ink.mark;
    context.beginPath();
    context.moveTo(x, 20);
    context.lineTo(x, bottom.y + bottom.height);
    context.stroke();
  }
  drawn.milliseconds = performance.now() - begun;
  window.spillwayDrawn = drawn;
}

let waiting = false;
function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; draw(); });
}
