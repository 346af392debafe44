// Uses the page as a person would and writes down what it sees: the test puts this behind the page's own scripts.
const probe = { errors: window.pageErrors, dark: dark.matches, width: window.innerWidth };
const key = (name) => canvas.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
const draws = (steps) => { steps(); draw(); return { ...window.spillwayDrawn }; };
try {
  probe.data = { ...window.spillwayData };
  probe.drawn = draws(() => {});
  probe.threads = threads.length;
  probe.marks = data.marks.at.length;
  probe.notes = by("notes").textContent;
  // What lies on the device, tensor by tensor, at many moments: never more than the device holds.
  probe.fullest = d3.max(d3.range(0, 400), (i) => d3.sum(placesAt((i / 400) * data.iteration).filter((_, at) => at % 3 === 0)));
  probe.too_wide = document.documentElement.scrollWidth > document.documentElement.clientWidth;
  probe.zoomed = draws(() => { for (let i = 0; i < 6; ++i) key("+"); });
  const before = scale.domain()[0];
  key("ArrowRight");
  probe.panned = scale.domain()[0] > before;
  probe.whole_again = draws(() => key("0"));
  by("search").value = tensors.name[0];
  by("search").dispatchEvent(new Event("input"));
  by("found").querySelector("button").click();
  probe.life_title = by("detail-title").textContent;
  probe.life_rows = by("detail-text").querySelectorAll("tbody tr").length;
  probe.life_lane = lanes.some((lane) => lane.kind === "life");
  const box = canvas.getBoundingClientRect(), lane = lanes.find((one) => one.kind === "kernels");
  const last = kernels.count - 1, x = box.left + scale((kernels.start[last] + kernels.end[last]) / 2);
  const pointer = { clientX: x, clientY: box.top + lane.y + lane.height / 2, bubbles: true };
  canvas.dispatchEvent(new MouseEvent("click", pointer));
  probe.clicked = by("detail-title").textContent;
  cursor = kernels.start[last];
  showCursor();
  probe.cursor = by("cursor-text").textContent;
  by("tables").open = true;
  showTables();
  probe.table_rows = by("tables-text").querySelector("tbody").childElementCount;
  probe.wait_causes = d3.sum([...document.querySelectorAll("#waits tbody:first-of-type")].slice(0, 1), (body) =>
    d3.sum([...body.rows], (row) => Number(row.cells[1].textContent)));
  probe.unnamed = [...document.querySelectorAll("button, input, canvas[tabindex]")].filter((one) =>
    !(one.textContent.trim() || one.getAttribute("aria-label") || (one.labels && one.labels.length > 0))).length;
} catch (error) {
  probe.errors.push(String(error.stack));
}
parent.postMessage(JSON.stringify(probe), "*");
