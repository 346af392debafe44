// Words, units and elements that all pages use.
const TIERS = ["device", "host", "ssd"];
const TIER_NAMES = ["device", "host", "SSD"];
const STALLS = {
  asked_late: "asked for too late",
  on_its_way: "still on its way",
  behind_others: "behind other transfers",
  no_room: "no room on the device",
  other: "something else",
};
const CAUSES = Object.keys(STALLS);

function sizeText(bytes) {
  let value = bytes, unit = "B";
  for (const next of ["KiB", "MiB", "GiB", "TiB"]) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  return `${unit === "B" ? value : value.toPrecision(value < 1000 ? 3 : 4)} ${unit}`;
}

function timeText(ns) {
  if (ns === 0) return "0 s";
  const [scale, unit] = ns < 1e3 ? [1, "ns"] : ns < 1e6 ? [1e3, "µs"] : ns < 1e9 ? [1e6, "ms"] : [1e9, "s"];
  return `${d3.format(".4r")(ns / scale)} ${unit}`;
}

// A moment, so exact that neighbours in a picture of so much time differ. One unit for all of a page.
function momentTextFor(longest) {
  const [scale, unit] = longest < 1e6 ? [1e3, "µs"] : longest < 1e9 ? [1e6, "ms"] : [1e9, "s"];
  return (ns, shown) => {
    const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(shown / scale / 100))));
    return `${(ns / scale).toFixed(digits)} ${unit}`;
  };
}

const by = (id) => document.getElementById(id);

function element(kind, content, ...classes) {
  const made = document.createElement(kind);
  if (typeof content === "string") made.textContent = content;
  else for (const one of [content].flat()) if (one) made.append(one);
  made.classList.add(...classes);
  return made;
}

// A sentence, in which `commands` may stand.
const noteElement = (note) => element("p", note.split("`").map((part, i) => (i % 2 === 1 ? element("code", part) : part)));

function button(text, action) {
  const made = element("button", text);
  made.type = "button";
  made.addEventListener("click", action);
  return made;
}

// Columns: [heading, "number" or ""]; cells are texts or elements.
function table(caption, columns, rows) {
  const made = element("table", [element("caption", caption)]);
  const head = element("tr", columns.map(([name, kind]) => {
    const cell = element("th", name, ...(kind ? [kind] : []));
    cell.scope = "col";
    return cell;
  }));
  made.append(element("thead", [head]));
  made.append(element("tbody", rows.map((row) =>
    element("tr", row.map((cell, i) => element("td", cell, ...(columns[i][1] ? [columns[i][1]] : [])))))));
  const box = element("div", [made], "scroll");  // may be wider than the page, and then scrolls: by keys, too
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", caption);
  return box;
}

function addToLegend(text, shade, pattern) {
  const swatch = document.createElement("canvas");
  swatch.width = 22;
  swatch.height = 14;
  swatch.setAttribute("aria-hidden", "true");
  const c = swatch.getContext("2d");
  c.fillStyle = fillOf(c, shade, pattern);
  c.fillRect(0, 0, 22, 14);
  by("legend").append(element("span", [swatch, text]));
}
