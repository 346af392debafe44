// What the page shows. Times are nanoseconds from the iteration's beginning.
const data = JSON.parse(document.getElementById("data").textContent);
const kernels = data.kernels, transfers = data.transfers, tensors = data.tensors, levels = data.levels, lives = data.lives;
kernels.count = kernels.start.length;
transfers.count = transfers.begin.length;
tensors.count = tensors.name.length;
levels.count = levels.at.length;
lives.count = lives.at.length;

const copied = (i) => (transfers.flags[i] & 1) !== 0;
const cancelled = (i) => (transfers.flags[i] & 2) !== 0;
const fromBefore = (i) => (transfers.flags[i] & 4) !== 0;
const goesOn = (i) => (transfers.flags[i] & 8) !== 0;
const isUrgent = (i) => transfers.urgency[i] !== "plan";

// Kernels that waited, in order.
const waits = [];
for (let k = 0; k < kernels.count; ++k) if (kernels.start[k] > kernels.ready[k]) waits.push(k);

// Threads that run kernels, each with its kernels and those that waited: one, but in a real run.
const threads = Array.from(new Set(kernels.thread)).sort((a, b) => a - b).map((thread) => ({
  thread, kernels: d3.range(kernels.count).filter((k) => kernels.thread[k] === thread), waits: waits.filter((k) => kernels.thread[k] === thread),
}));

// Ways that something moved on, those up first; each with its transfers as two rows: urgent and planned.
const links = [];
for (const [from, to] of [[1, 0], [2, 0], [0, 1], [0, 2]]) {
  const link = { from, to, rows: [] };
  const of = d3.range(transfers.count).filter((i) => transfers.from[i] === from && transfers.to[i] === to);
  for (const urgent of [true, false]) {
    const row = of.filter((i) => isUrgent(i) === urgent);
    if (row.length > 0) link.rows.push({ urgent, transfers: row });
  }
  if (link.rows.length > 0) links.push(link);
}

// By tensor: the kernels that use it, its transfers, its births and deaths.
const usesOf = Array.from({ length: tensors.count }, () => []);
const movesOf = Array.from({ length: tensors.count }, () => []);
const livesOf = Array.from({ length: tensors.count }, () => []);
for (let k = 0; k < kernels.count; ++k)
  for (const t of new Set([...kernels.reads[k], ...kernels.writes[k]])) usesOf[t].push(k);
for (let i = 0; i < transfers.count; ++i) if (transfers.tensor[i] !== null) movesOf[transfers.tensor[i]].push(i);
for (let i = 0; i < lives.count; ++i) livesOf[lives.tensor[i]].push(i);

const momentText = momentTextFor(data.iteration);
const linkText = (from, to) => `${TIER_NAMES[from]} to ${TIER_NAMES[to]}`;
const kernelText = (k) => `${kernels.name[k]}${kernels.replay[k] ? " (again)" : ""}`;

// The tier levels at a moment: the last ones that began.
function levelAt(ns) {
  const i = d3.bisectRight(levels.at, ns) - 1;
  return i < 0 ? [0, 0, 0] : TIERS.map((tier) => levels[tier][i]);
}

// The kernel that runs or waits at a moment, or none.
function kernelAt(ns) {
  const k = d3.bisectRight(kernels.ready, ns) - 1;
  return k >= 0 && ns < kernels.end[k] ? k : -1;
}

// What changes where bytes of tensors are, by its beginning: [begin, end, tensor, tier that loses, tier that gains, bytes].
// Nothing loses (-1) what is born, which the device gains, and what is freed, which nothing gains.
const changes = [];
for (let i = 0; i < lives.count; ++i)
  changes.push([lives.at[i], lives.at[i], lives.tensor[i], -1, lives.born[i] ? 0 : -1, 0]);
for (let i = 0; i < transfers.count; ++i)
  if (transfers.tensor[i] !== null && !cancelled(i))
    changes.push([transfers.begin[i], transfers.end[i], transfers.tensor[i], transfers.from[i], transfers.to[i], transfers.bytes[i]]);
changes.sort((a, b) => a[0] - b[0]);
const changesOf = Array.from({ length: tensors.count }, () => []);
for (const one of changes) changesOf[one[2]].push(one);

// Does to the three numbers from at[base] on what a change has done by a moment. A transfer is many chunks that move one
// after the other, so its bytes change places all along.
function change(at, base, [begin, end, tensor, loses, gains, bytes], ns) {
  if (loses < 0) {
    at.fill(0, base, base + 3);
    if (gains === 0) at[base] = tensors.bytes[tensor];
    return;
  }
  const moved = Math.min(at[base + loses], ns >= end ? bytes : (bytes * (ns - begin)) / (end - begin));
  at[base + loses] -= moved;
  at[base + gains] += moved;
}

// Where the bytes of each tensor are at a moment, as far as transfers tell it: three numbers each.
function placesAt(ns) {
  const at = new Float64Array(tensors.count * 3);
  for (const [tensor, ...bytes] of tensors.at_start) bytes.forEach((value, tier) => (at[tensor * 3 + tier] = value));
  for (const one of changes) {
    if (one[0] > ns) break;
    change(at, one[2] * 3, one, ns);
  }
  return at;
}

// Where one tensor is over time: [begin, end, tier], with most of its bytes there.
function placesOf(tensor) {
  const at = [0, 0, 0], spans = [];
  const started = tensors.at_start.find((one) => one[0] === tensor);
  if (started) TIERS.forEach((_, tier) => (at[tier] = started[tier + 1]));
  const most = () => (d3.max(at) > 0 ? d3.scan(at, d3.descending) : -1);
  let since = 0, place = most();
  for (const one of changesOf[tensor]) {
    change(at, 0, one, one[1]);
    const now = most(), moment = (one[0] + one[1]) / 2;  // Halfway through, most is on the other side.
    if (now === place) continue;
    if (place >= 0 && moment > since) spans.push([since, moment, place]);
    since = moment;
    place = now;
  }
  if (place >= 0) spans.push([since, data.iteration, place]);
  return spans;
}
