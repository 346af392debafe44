// Pointer, wheel, keys, search: what is in sight and what is selected.
const MOST_ZOOM = Math.max(2, whole / 200);  // until 200 ns fill the width
const zoom = d3.zoom().scaleExtent([1, MOST_ZOOM]).on("zoom", () => {
  scale = d3.zoomTransform(canvas).rescaleX(full);
  redraw();
});
const picture = d3.select(canvas);

function look(from, to) {
  const width_ns = Math.max((whole * 1.0001) / MOST_ZOOM, Math.min(whole, to - from));
  const begin = Math.max(0, Math.min(whole - width_ns, from));
  const k = whole / width_ns, [x0] = full.range();
  picture.call(zoom.transform, d3.zoomIdentity.translate(x0, 0).scale(k).translate(-full(begin), 0));
}

function zoomBy(factor) {
  const [from, to] = scale.domain(), middle = cursor !== null && cursor >= from && cursor <= to ? cursor : (from + to) / 2;
  look(middle - (middle - from) / factor, middle + (to - middle) / factor);
}

function pan(part) {
  const [from, to] = scale.domain(), by_ns = (to - from) * part;
  look(from + by_ns, to + by_ns);
}

// A moment in the middle of what is in sight.
function lookAt(ns) {
  const [from, to] = scale.domain(), half = Math.min(to - from, whole / 20) / 2;
  cursor = ns;
  look(ns - half, ns + half);
  showCursor();
  redraw();
}

let waitAt = -1;
function goToWait(i) {
  if (waits.length === 0) return;
  waitAt = Math.max(0, Math.min(waits.length - 1, i));
  const k = waits[waitAt], long = kernels.start[k] - kernels.ready[k];
  select({ kernel: k, tensor: kernels.waited_for[k] ?? undefined }, false);
  showKernel(k);
  cursor = kernels.ready[k] + long / 2;
  look(kernels.ready[k] - 3 * long, kernels.start[k] + 3 * long);
  showCursor();
  by("status").textContent = `Wait ${waitAt + 1} of ${waits.length}: ${kernelText(k)} ${kernels.cause[k]}`;
}

function select(what, show = true) {
  selected = what;
  const t = what.tensor;
  life = t === undefined ? null : { spans: placesOf(t), kernels: usesOf[t], transfers: movesOf[t] };
  if (show && t !== undefined) showTensor(t);
  if (show && t === undefined) showKernel(what.kernel);
  layOut();
  zoom.extent([[full.range()[0], 0], [full.range()[1], canvas.clientHeight]]).translateExtent([[full.range()[0], 0], [full.range()[1], canvas.clientHeight]]);
  redraw();
  if (show) by("status").textContent = by("detail-title").textContent;
}
const selectTensor = (t) => select({ tensor: t });

function resize() {
  const [from, to] = scale.domain();
  layOut();
  const [x0, x1] = full.range(), extent = [[x0, 0], [x1, canvas.clientHeight]];
  zoom.extent(extent).translateExtent(extent);
  look(from, to);
  draw();
}

const momentOf = (event) => {
  const x = event.clientX - canvas.getBoundingClientRect().left, [x0, x1] = full.range();
  return x < x0 || x > x1 ? null : Math.max(0, Math.min(whole, scale.invert(x)));
};

let cursorWaits = false;
canvas.addEventListener("pointermove", (event) => {
  cursor = momentOf(event);
  redraw();
  if (cursorWaits) return;
  cursorWaits = true;
  requestAnimationFrame(() => { cursorWaits = false; showCursor(); });
});
canvas.addEventListener("click", (event) => {
  const ns = momentOf(event), y = event.clientY - canvas.getBoundingClientRect().top;
  const lane = lanes.find((one) => y >= one.y - 3 && y <= one.y + one.height + 3);
  if (ns === null || !lane || !lane.spans) return;
  const near = scale.invert(3) - scale.invert(0), i = spanAt(lane.spans, ns, near);
  if (i < 0) return;
  if (lane.kind === "kernels") select({ kernel: lane.of[i] });
  if (lane.kind === "waits") { waitAt = waits.indexOf(lane.of[i]); select({ kernel: lane.of[i] }); }
  const tensor = lane.kind === "transfers" ? transfers.tensor[lane.row.transfers[i]] : null;
  if (tensor !== null) selectTensor(tensor);
});

const KEYS = {
  ArrowLeft: () => pan(-0.1), ArrowRight: () => pan(0.1), "+": () => zoomBy(1.5), "=": () => zoomBy(1.5), "-": () => zoomBy(1 / 1.5),
  0: () => look(0, whole), Home: () => look(0, whole), n: () => goToWait(waitAt + 1), p: () => goToWait(waitAt - 1),
};
canvas.addEventListener("keydown", (event) => {
  const act = KEYS[event.key];
  if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  act();
  if (event.key.startsWith("Arrow")) {
    const [from, to] = scale.domain();
    cursor = (from + to) / 2;
    showCursor();
  }
});

by("zoom-in").addEventListener("click", () => zoomBy(2));
by("zoom-out").addEventListener("click", () => zoomBy(0.5));
by("whole").addEventListener("click", () => look(0, whole));
by("next-wait").addEventListener("click", () => goToWait(waitAt + 1));
by("previous-wait").addEventListener("click", () => goToWait(waitAt - 1));
for (const id of ["next-wait", "previous-wait"]) by(id).disabled = waits.length === 0;

by("search").addEventListener("input", (event) => {
  const text = event.target.value.trim().toLowerCase(), most = 24, found = [];
  const add = (name, what, action) => found.push(element("li", [button(`${what} ${name}`, action)]));
  for (let t = 0; text && t < tensors.count && found.length < most; ++t)
    if (tensors.name[t].toLowerCase().includes(text)) add(tensors.name[t], "tensor", () => selectTensor(t));
  for (let k = 0; text && k < kernels.count && found.length < 2 * most; ++k)
    if (kernels.name[k].toLowerCase().includes(text))
      add(`${kernelText(k)} at ${momentText(kernels.start[k], whole / 1000)}`, "kernel", () => { select({ kernel: k }); lookAt(kernels.start[k]); });
  by("found").replaceChildren(...found);
  by("found").hidden = text === "";
  by("status").textContent = text ? `${found.length} found` : "";
  if (text && found.length === 0) by("found").append(element("li", "Nothing has that in its name."));
});

by("tables").addEventListener("toggle", showTables);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
dark.addEventListener("change", () => { readColours(); redraw(); });
window.addEventListener("resize", resize);
window.addEventListener("beforeprint", () => { readColours(); resize(); });

readColours();
showHead();
showLegend();
showCursor();
showWaits();
layOut();
picture.call(zoom).on("dblclick.zoom", null);
resize();
window.spillwayData = { kernels: kernels.count, waits: waits.length, transfers: transfers.count, levels: levels.count };
