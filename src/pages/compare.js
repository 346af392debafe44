// Several policies on one clock: for each the memory, the kernels and the waits.
const data = JSON.parse(document.getElementById("data").textContent);
const runs = data.runs;
const whole = Math.max(1, d3.max(runs, (run) => run.iteration));
const momentText = momentTextFor(whole);
const canvas = by("picture"), context = canvas.getContext("2d");
const full = d3.scaleLinear().domain([0, whole]);
const NAME = 17, MEMORY = 52, KERNELS = 16, WAITS = 10, SPACE = 12, AXIS = 24;
let scale = full.copy(), cursor = null, bands = [];

for (const run of runs) {
  const kernels = run.kernels;
  run.waits = d3.range(kernels.start.length).filter((k) => kernels.start[k] > kernels.ready[k]);
  run.waited = d3.sum(run.waits, (k) => kernels.start[k] - kernels.ready[k]);
  run.stack = stackPeakOf(run.levels);
  run.kernelSpans = {
    count: kernels.start.length, begin: (i) => kernels.start[i], end: (i) => kernels.end[i],
    fill: (i) => COLOURS[kernels.phase[i]], name: (i) => kernels.name[i],
  };
  run.waitSpans = {
    count: run.waits.length, begin: (i) => kernels.ready[run.waits[i]], end: (i) => kernels.start[run.waits[i]],
    fill: (i) => fillOf(context, COLOURS.wait, CAUSE_PATTERNS[kernels.stall[run.waits[i]]] ?? "dots"),
  };
}
// All stacks are drawn in one scale, but for those that nothing limits.
const top_bytes = d3.max(runs, (run) => memoryTop(run.stack, run.capacity[0]));

function layOut() {
  const width = canvas.clientWidth, density = window.devicePixelRatio || 1;
  const box = { x: 6, width: width - 14 };
  let y = AXIS;
  bands = runs.map((run) => {
    const band = { run, name: y + NAME / 2, memory: { ...box, y: y + NAME, height: MEMORY } };
    band.kernels = { ...box, y: band.memory.y + MEMORY + 3, height: KERNELS };
    band.waits = { ...box, y: band.kernels.y + KERNELS + 2, height: WAITS };
    y = band.waits.y + WAITS + SPACE;
    return band;
  });
  canvas.style.height = `${y}px`;
  canvas.width = Math.round(width * density);
  canvas.height = Math.round(y * density);
  context.setTransform(density, 0, 0, density, 0, 0);
  full.range([box.x, box.x + box.width]);
  scale.range(full.range());
}

function line(x0, y0, x1, y1, colour, dash = []) {
  context.strokeStyle = colour;
  context.setLineDash(dash);
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
  context.setLineDash([]);
}

function draw() {
  const [from, to] = scale.domain(), width = canvas.clientWidth, height = canvas.clientHeight;
  const drawn = { runs: runs.length, kernels: 0, waits: 0 };
  context.fillStyle = ink.paper;
  context.fillRect(0, 0, width, height);
  context.font = '12px system-ui, "DejaVu Sans", sans-serif';
  context.textBaseline = "middle";
  for (const at of scale.ticks(Math.max(2, Math.floor(width / 110)))) {
    const x = scale(at), text = momentText(at, to - from), wide = context.measureText(text).width;
    line(x, 20, x, height, ink.line);
    context.fillStyle = ink.soft;
    context.fillText(text, Math.max(1, Math.min(width - wide - 1, x - wide / 2)), 11);
  }
  for (const { run, name, memory, kernels, waits } of bands) {
    context.save();
    context.beginPath();
    context.rect(memory.x, memory.y, memory.width, waits.y + waits.height - memory.y);
    context.clip();
    context.fillStyle = ink.lane;
    for (const box of [memory, kernels, waits]) context.fillRect(box.x, box.y, box.width, box.height);
    drawStack(context, scale, memory, run, top_bytes);
    drawn.kernels += drawSpans(context, scale, kernels, run.kernelSpans);
    drawn.waits += drawSpans(context, scale, waits, run.waitSpans);
    if (run.capacity[0] !== null && run.capacity[0] < top_bytes) {
      const y = heightOf(memory, top_bytes)(run.capacity[0]);
      line(memory.x, y, memory.x + memory.width, y, ink.mark, [6, 4]);
    }
    line(scale(run.iteration), memory.y, scale(run.iteration), waits.y + waits.height, ink.mark);
    context.restore();
    label(context, `${run.policy}: ${timeText(run.iteration)}`, memory.x + 3, name);
  }
  if (cursor !== null) line(scale(cursor), 20, scale(cursor), height, ink.mark);
  window.spillwayDrawn = drawn;
}

let waiting = false;
function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; draw(); showCursor(); });
}

function showCursor() {
  if (cursor === null) return by("cursor-text").replaceChildren(element("p", "Move the pointer over the picture."));
  const [from, to] = scale.domain();
  by("cursor-text").replaceChildren(table(momentText(cursor, to - from), [["policy", ""], ["on the device", "number"], ["what it does", ""]], runs.map((run) => {
    const i = d3.bisectRight(run.levels.at, cursor) - 1, k = d3.bisectRight(run.kernels.ready, cursor) - 1;
    const what = cursor >= run.iteration ? "its iteration is over" : k < 0 || cursor >= run.kernels.end[k] ? "no kernel runs"
      : cursor < run.kernels.start[k] ? `${run.kernels.name[k]} waits: ${STALLS[run.kernels.stall[k]]}` : `${run.kernels.name[k]} runs`;
    return [run.policy, i < 0 ? "0 B" : sizeText(run.levels.device[i]), what];
  })));
}

const zoom = d3.zoom().scaleExtent([1, Math.max(2, whole / 200)]).on("zoom", () => {
  scale = d3.zoomTransform(canvas).rescaleX(full);
  redraw();
});
const picture = d3.select(canvas);
const zoomBy = (factor) => picture.call(zoom.scaleBy, factor);
const pan = (part) => picture.call(zoom.translateBy, (-part * (full.range()[1] - full.range()[0])) / d3.zoomTransform(canvas).k, 0);
const showAll = () => picture.call(zoom.transform, d3.zoomIdentity);

function resize() {
  layOut();
  const [x0, x1] = full.range(), extent = [[x0, 0], [x1, canvas.clientHeight]];
  zoom.extent(extent).translateExtent(extent);
  showAll();
  draw();
}

const KEYS = {
  ArrowLeft: () => pan(-0.1), ArrowRight: () => pan(0.1), "+": () => zoomBy(1.5), "=": () => zoomBy(1.5), "-": () => zoomBy(1 / 1.5),
  0: showAll, Home: showAll,
};
canvas.addEventListener("keydown", (event) => {
  if (!KEYS[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  KEYS[event.key]();
});
canvas.addEventListener("pointermove", (event) => {
  cursor = Math.max(0, Math.min(whole, scale.invert(event.clientX - canvas.getBoundingClientRect().left)));
  redraw();
});
by("zoom-in").addEventListener("click", () => zoomBy(2));
by("zoom-out").addEventListener("click", () => zoomBy(0.5));
by("whole").addEventListener("click", showAll);
window.addEventListener("resize", resize);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); redraw(); });

by("title").textContent = `${data.trace} on ${data.machine}`;
canvas.setAttribute("aria-label", `${by("title").textContent}: one iteration under each of ${runs.length} policies. The table above has the figures.`);
const causes = CAUSES.filter((cause) => runs.some((run) => run.waits.some((k) => run.kernels.stall[k] === cause)));
by("figures").append(table("Of the iteration that is drawn", [["policy", ""], ["time", "number"], ["of ideal", "number"], ["device peak", "number"], ["kernels that waited", "number"], ["waited", "number"],
  ...causes.map((cause) => [STALLS[cause], "number"])],
  [...runs.map((run) => [run.steady ? run.policy : `${run.policy} (the last one)`, timeText(run.iteration), `${d3.format(".1f")((100 * run.ideal) / (run.iteration || 1))} %`, sizeText(run.peak[0]), `${run.waits.length}`, timeText(run.waited),
    ...causes.map((cause) => timeText(d3.sum(run.waits.filter((k) => run.kernels.stall[k] === cause), (k) => run.kernels.start[k] - run.kernels.ready[k])))]),
   ...data.infeasible.map((policy) => [policy, "infeasible", "", "", "", "", ...causes.map(() => "")])]));
TIERS.forEach((tier, i) => runs.some((run) => run.peak[i] > 0) && addToLegend(`on the ${TIER_NAMES[i]}`, COLOURS[tier], TIER_PATTERNS[tier]));
for (const phase of PHASES) if (runs.some((run) => run.kernels.phase.includes(phase))) addToLegend(phase === "other" ? "other kernels" : phase, COLOURS[phase], "plain");
for (const cause of causes) addToLegend(`waits: ${STALLS[cause]}`, COLOURS.wait, CAUSE_PATTERNS[cause]);
readColours();
showCursor();
layOut();
picture.call(zoom).on("dblclick.zoom", null);
resize();
window.spillwayData = { runs: runs.length, kernels: d3.sum(runs, (run) => run.kernels.start.length), waits: d3.sum(runs, (run) => run.waits.length) };
