// As probe.js, for the page of a run's report.
const probe = { errors: window.pageErrors, dark: dark.matches, width: window.innerWidth };
const key = (name) => canvas.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
try {
  probe.data = { ...window.spillwayData };
  draw();
  probe.drawn = { ...window.spillwayDrawn };
  probe.too_wide = document.documentElement.scrollWidth > document.documentElement.clientWidth;
  key("End");
  key("ArrowLeft");
  probe.cursor = by("cursor-text").textContent;
  probe.lanes = lanes.map((lane) => lane.name);
  probe.phases = by("figures").querySelector("tbody").rows.length;
  probe.notes = by("notes").textContent;
  probe.bold = by("notes").querySelectorAll("b").length;
  probe.unnamed = [...document.querySelectorAll("button, canvas[tabindex]")].filter((one) => !(one.textContent.trim() || one.getAttribute("aria-label"))).length;
} catch (error) {
  probe.errors.push(String(error.stack));
}
parent.postMessage(JSON.stringify(probe), "*");
