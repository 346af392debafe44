// As probe.js, for the page of several policies.
const probe = { errors: window.pageErrors, dark: window.matchMedia("(prefers-color-scheme: dark)").matches, width: window.innerWidth };
const key = (name) => canvas.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
const draws = (steps) => { steps(); draw(); return { ...window.spillwayDrawn }; };
try {
  probe.data = { ...window.spillwayData };
  probe.drawn = draws(() => {});
  probe.too_wide = document.documentElement.scrollWidth > document.documentElement.clientWidth;
  probe.zoomed = draws(() => { for (let i = 0; i < 6; ++i) key("+"); });
  const before = scale.domain()[0];
  key("ArrowRight");
  probe.panned = scale.domain()[0] > before;
  probe.whole_again = draws(() => key("0"));
  probe.rows = by("figures").querySelectorAll("tbody tr").length;
  cursor = 0;
  showCursor();
  probe.cursor_rows = by("cursor-text").querySelectorAll("tbody tr").length;
  probe.unnamed = [...document.querySelectorAll("button, canvas[tabindex]")].filter((one) => !(one.textContent.trim() || one.getAttribute("aria-label"))).length;
} catch (error) {
  probe.errors.push(String(error.stack));
}
parent.postMessage(JSON.stringify(probe), "*");
