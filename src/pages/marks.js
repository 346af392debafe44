// Colours (of Okabe and Ito: told apart by the colour-blind, too) and patterns, and marks on a canvas.
const COLOURS = {
  device: "#0072b2", host: "#e69f00", ssd: "#009e73",
  forward: "#56b4e9", backward: "#cc79a7", optimizer: "#f0e442", other: "#999999",
  wait: "#d55e00",
};
const TIER_PATTERNS = { device: "plain", host: "rising", ssd: "dots" };
const CAUSE_PATTERNS = {
  asked_late: "plain", on_its_way: "rising", behind_others: "crossed", no_room: "level", other: "dots",
};
const PHASES = ["forward", "backward", "optimizer", "other"];

const patterns = new Map();

// A fill: the colour with a pattern of lines or dots in it.
function fillOf(context, colour, pattern) {
  if (pattern === "plain") return colour;
  const key = colour + pattern;
  if (!patterns.has(key)) {
    const size = 8, tile = document.createElement("canvas");
    tile.width = tile.height = size;
    const c = tile.getContext("2d");
    c.fillStyle = colour;
    c.fillRect(0, 0, size, size);
    c.strokeStyle = c.fillStyle = "rgba(255, 255, 255, 0.75)";
    c.lineWidth = 1.5;
    const line = (x0, y0, x1, y1) => { c.beginPath(); c.moveTo(x0, y0); c.lineTo(x1, y1); c.stroke(); };
    if (pattern === "rising" || pattern === "crossed") for (const x of [-8, 0, 8]) line(x, 8, x + 8, 0);
    if (pattern === "crossed") for (const x of [-8, 0, 8]) line(x, 0, x + 8, 8);
    if (pattern === "level") line(0, 4, 8, 4);
    if (pattern === "dots") c.fillRect(3, 3, 2, 2);
    patterns.set(key, context.createPattern(tile, "repeat"));
  }
  return patterns.get(key);
}

// Draws the spans of a lane that are in sight; those that are thinner than a pixel are drawn together, a column of one
// pixel for all that begin in it, in the colour of the longest. `spans` has count, begin(i), end(i), fill(i) and,
// if its marks have names, name(i); begins ascend, and ends, too. Returns how many spans are in sight.
function drawSpans(context, scale, box, spans) {
  const [from, to] = scale.domain();
  let low = 0, high = spans.count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (spans.end(middle) < from) low = middle + 1; else high = middle;
  }
  // The scale by hand: it is called for each span in sight, each time.
  const perNano = (scale(to) - scale(from)) / (to - from), origin = scale(from) - from * perNano, right = box.x + box.width;
  let seen = 0, column = -1, longest = 0, covered = 0, columnOf = -1;
  const flush = () => {
    if (column < 0) return;
    context.globalAlpha = Math.max(0.35, Math.min(1, covered));
    context.fillStyle = spans.fill(columnOf);
    context.fillRect(column, box.y, 1, box.height);
    context.globalAlpha = 1;
    column = -1;
  };
  for (let i = low; i < spans.count && spans.begin(i) <= to; ++i) {
    ++seen;
    const x0 = Math.max(box.x, origin + perNano * spans.begin(i)), x1 = Math.min(right, origin + perNano * spans.end(i));
    const width = x1 - x0;
    if (width < 1) {
      const at = Math.floor(x0);
      if (at !== column) { flush(); column = at; longest = -1; covered = 0; }
      covered += width;
      if (width > longest) { longest = width; columnOf = i; }
      continue;
    }
    flush();
    context.fillStyle = spans.fill(i);
    context.fillRect(x0, box.y, Math.max(1, width > 4 ? width - 1 : width), box.height);
    if (spans.name && width > 34) {
      context.save();
      context.beginPath();
      context.rect(x0, box.y, width - 2, box.height);
      context.clip();
      context.fillStyle = "#000000";
      context.fillText(spans.name(i), x0 + 4, box.y + box.height / 2 + 1);
      context.restore();
    }
  }
  flush();
  return seen;
}

// Which span of a lane is at a moment, or so near that a pointer means it; -1: none.
function spanAt(spans, ns, near) {
  let best = -1, distance = near;
  let low = 0, high = spans.count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (spans.end(middle) < ns - near) low = middle + 1; else high = middle;
  }
  for (let i = low; i < spans.count && spans.begin(i) <= ns + near; ++i) {
    const away = Math.max(0, spans.begin(i) - ns, ns - spans.end(i));
    if (away <= distance) { distance = away; best = i; }
    if (away === 0) break;
  }
  return best;
}

// The colours of page.css, which differ where it is dark.
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
let ink = {};
function readColours() {
  ink = { paper: colour("--paper"), text: colour("--ink"), soft: colour("--soft"), line: colour("--line"),
          lane: colour("--lane"), mark: colour("--mark") };
}

// A text that is read upon anything.
function label(context, text, x, y) {
  const wide = context.measureText(text).width;
  context.globalAlpha = 0.82;
  context.fillStyle = ink.paper;
  context.fillRect(x - 3, y - 8, wide + 6, 16);
  context.globalAlpha = 1;
  context.fillStyle = ink.text;
  context.fillText(text, x, y);
}

// The most that the stack of tiers takes.
function stackPeakOf(levels) {
  let most = 1;
  for (let i = 0; i < levels.at.length; ++i) most = Math.max(most, levels.device[i] + levels.host[i] + levels.ssd[i]);
  return most;
}
// How high a picture of it goes: to the device's capacity, if that is not far above.
const memoryTop = (peak, capacity) => 1.08 * (capacity !== null && capacity < 2 * peak ? Math.max(peak, capacity) : peak);
const heightOf = (box, top) => (bytes) => box.y + box.height * (1 - bytes / top);

// The levels of the tiers of `of`, one upon the other. Those within a pixel are drawn as one, the highest.
function drawStack(context, scale, box, of, top) {
  const levels = of.levels, count = levels.at.length, y = heightOf(box, top);
  const [from, to] = scale.domain();
  const first = Math.max(0, d3.bisectRight(levels.at, from) - 1);
  const perNano = (scale(to) - scale(from)) / (to - from), origin = scale(from) - from * perNano, right = box.x + box.width;
  const points = [];  // [x, next x, height of one tier, of two, of all]
  let seen = 0, last = null;
  for (let i = first; i < count && levels.at[i] <= to; ++i) {
    ++seen;
    const x = Math.max(box.x, origin + perNano * levels.at[i]);
    const next = Math.min(right, origin + perNano * (i + 1 < count ? levels.at[i + 1] : of.iteration));
    const one = levels.device[i], two = one + levels.host[i], all = two + levels.ssd[i];
    if (last && next - last[0] < 0.7) {
      last[1] = next;
      last[2] = Math.max(last[2], one);
      last[3] = Math.max(last[3], two);
      last[4] = Math.max(last[4], all);
    } else {
      points.push(last = [x, next, one, two, all]);
    }
  }
  for (let tier = 2; tier >= 0 && last; --tier) {
    if (of.peak[tier] === 0) continue;
    context.fillStyle = fillOf(context, COLOURS[TIERS[tier]], TIER_PATTERNS[TIERS[tier]]);
    context.beginPath();
    context.moveTo(points[0][0], y(0));
    for (const point of points) {
      const height = y(point[2 + tier]);
      context.lineTo(point[0], height);
      context.lineTo(Math.max(point[0], point[1]), height);
    }
    context.lineTo(last[1], y(0));
    context.closePath();
    context.fill();
  }
  return seen;
}
