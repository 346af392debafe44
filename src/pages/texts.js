// Texts beside the picture: what is at the cursor, the life of a tensor, waits, and tables of everything.
function showHead() {
  by("title").textContent = `${data.trace}: ${data.heading}`;
  const parts = [element("b", timeText(data.iteration)), data.iterations === 1 ? " an iteration" : data.iterations === 0 ? "" : ` for ${data.iterations} iterations`];
  if (data.shows_waits) {
    const waited = d3.sum(waits, (k) => kernels.start[k] - kernels.ready[k]);
    if (data.ideal > 0) parts.push(`, ideal ${timeText(data.ideal)} (${d3.format(".1f")((100 * data.ideal) / data.iteration)} % of ideal)`);
    parts.push(". ", element("b", waits.length === 0 ? "No kernel waited" : `${waits.length} of ${kernels.count} kernels waited ${timeText(waited)}`), ". ");
    if (!data.steady) parts.push("Its iterations never become equal: this is the last one. ");
  } else {
    parts.push(`, ${kernels.count} kernels, ${tensors.count} tensors. `);
  }
  const peaks = TIERS.map((_, tier) => tier).filter((tier) => data.peak[tier] > 0).map((tier) =>
    `${TIER_NAMES[tier]} ${sizeText(data.peak[tier])}${data.capacity[tier] !== null ? ` of ${sizeText(data.capacity[tier])}` : ""}`);
  parts.push(`Peak: ${peaks.join(", ")}.`);
  by("summary").append(...parts);
  by("notes").append(...data.notes.map(noteElement));
  canvas.setAttribute("aria-label", `Timeline of ${by("title").textContent}. ${by("summary").textContent} The tables below say the same in words.`);
}

function showLegend() {
  TIERS.forEach((tier, i) => data.peak[i] > 0 && addToLegend(`on the ${TIER_NAMES[i]}`, COLOURS[tier], TIER_PATTERNS[tier]));
  const phases = new Set(kernels.phase);
  for (const phase of PHASES) if (phases.has(phase)) addToLegend(phase === "other" ? "other kernels" : phase, COLOURS[phase], "plain");
  const causes = new Set(waits.map((k) => kernels.stall[k]));
  for (const cause of CAUSES) if (causes.has(cause)) addToLegend(`waits: ${STALLS[cause]}`, COLOURS.wait, CAUSE_PATTERNS[cause]);
  for (const link of links)
    for (const row of link.rows) if (row.urgent) return addToLegend("urgent transfers", COLOURS.wait, "plain");
}

function showCursor() {
  const place = by("cursor-text");
  if (cursor === null) return place.replaceChildren(element("p", "Move the pointer over the picture, or the arrow keys."));
  const [from, to] = scale.domain(), k = kernelAt(cursor), level = levelAt(cursor), at = placesAt(cursor);
  const what = k < 0 ? "no kernel runs" : cursor < kernels.start[k] ? `${kernelText(k)} ${kernels.cause[k] ?? "waits"}` : `${kernelText(k)} runs`;
  const used = TIERS.map((_, tier) => tier).filter((tier) => data.peak[tier] > 0).map((tier) => `${TIER_NAMES[tier]} ${sizeText(level[tier])}`);
  const largest = d3.range(tensors.count).filter((t) => at[t * 3] > 0).sort((a, b) => at[b * 3] - at[a * 3]);
  const kinds = d3.nest().key((t) => tensors.kind[t]).rollup((of) => d3.sum(of, (t) => at[t * 3])).entries(largest);
  kinds.sort((a, b) => b.value - a.value);
  place.replaceChildren(
    element("p", [element("b", momentText(cursor, to - from)), `: ${what}.`]),
    element("p", `In use: ${used.join(", ")}. On the device: ${kinds.map((one) => `${sizeText(one.value)} ${one.key.replace("_", " ")}`).join(", ") || "nothing"}.`),
    table(`The largest of ${largest.length} tensors on the device`, [["tensor", ""], ["kind", ""], ["there", "number"]],
          largest.slice(0, 8).map((t) => [button(tensors.name[t], () => selectTensor(t)), tensors.kind[t].replace("_", " "), sizeText(at[t * 3])])));
}

const usesText = (k, t) => (kernels.writes[k].includes(t) ? (kernels.reads[k].includes(t) ? "read and written by" : "written by") : "read by");

function transferText(i) {
  if (!copied(i)) return `leaves for ${TIER_NAMES[transfers.to[i]]} without being copied: it has the same bytes`;
  const how = transfers.urgency[i] === "plan" ? "as planned" : transfers.urgency[i] === "fault" ? "by page faults" : "since a kernel needs it";
  const queued = transfers.begin[i] - transfers.queued[i];
  return `${linkText(transfers.from[i], transfers.to[i])} ${how}: ${sizeText(transfers.bytes[i])} in ${timeText(transfers.end[i] - transfers.begin[i])}` +
    (queued > 0 ? `, queued for ${timeText(queued)}` : "") + (cancelled(i) ? ", called back" : "") +
    (fromBefore(i) ? ", asked for in the iteration before" : "") + (goesOn(i) ? ", goes on in the next" : "");
}

function showTensor(t) {
  const rows = [], at = tensors.at_start.find((one) => one[0] === t);
  const go = (ns) => button(momentText(ns, whole / 1000), () => lookAt(ns));
  if (at) rows.push([-1, "there from the start, on " + TIER_NAMES.filter((_, tier) => at[tier + 1] > 0).join(" and ")]);
  for (const i of livesOf[t]) rows.push([lives.at[i], lives.born[i] ? "made" : "freed"]);
  for (const k of usesOf[t]) rows.push([kernels.start[k], `${usesText(k, t)} ${kernelText(k)}`]);
  for (const i of movesOf[t]) rows.push([transfers.begin[i], transferText(i)]);
  rows.sort((a, b) => a[0] - b[0]);
  by("detail-title").textContent = `The life of ${tensors.name[t]}`;
  by("detail-text").replaceChildren(
    element("p", `${sizeText(tensors.bytes[t])}, ${tensors.kind[t].replace("_", " ")}; ${usesOf[t].length} uses, ${movesOf[t].length} moves.`),
    table("What happens to it, in order", [["at", "number"], ["what", ""]],
          rows.map(([ns, what]) => [ns < 0 ? "start" : go(ns), what])));
}

function showKernel(k) {
  by("detail-title").textContent = `Kernel ${kernelText(k)}`;
  const used = [...new Set([...kernels.reads[k], ...kernels.writes[k]])].sort((a, b) => tensors.bytes[b] - tensors.bytes[a]);
  by("detail-text").replaceChildren(
    element("p", `${kernels.phase[k]}, runs for ${timeText(kernels.end[k] - kernels.start[k])} from ${momentText(kernels.start[k], whole / 1000)} on.`),
    element("p", kernels.cause[k] ? `It ${kernels.cause[k]}.` : "It did not wait."),
    table("What it uses", [["tensor", ""], ["size", "number"], ["how", ""]],
          used.map((t) => [button(tensors.name[t], () => selectTensor(t)), sizeText(tensors.bytes[t]), usesText(k, t).replace(" by", "")])));
}

function showWaits() {
  if (!data.shows_waits) return by("waits").remove();
  if (waits.length === 0) return by("waits-text").append(element("p", "No kernel waited."));
  const long = (k) => kernels.start[k] - kernels.ready[k];
  const causes = CAUSES.map((cause) => [cause, waits.filter((k) => kernels.stall[k] === cause)]).filter(([, of]) => of.length > 0);
  by("waits-text").append(
    table("By cause", [["cause", ""], ["kernels", "number"], ["time", "number"]],
          causes.map(([cause, of]) => [STALLS[cause], `${of.length}`, timeText(d3.sum(of, long))])),
    table("The longest", [["kernel", ""], ["why", ""]],
          waits.slice().sort((a, b) => long(b) - long(a)).slice(0, 12).map((k) => [button(kernelText(k), () => goToWait(waits.indexOf(k))), kernels.cause[k]])));
}

// A table in pages of 100 rows, made when somebody looks.
function pagedTable(caption, columns, count, row) {
  const each = 100, place = element("div", []), head = element("p", [], "pages");
  let page = 0;
  const show = () => {
    const from = page * each, to = Math.min(count, from + each);
    place.replaceChildren(table(`${caption}: ${count === 0 ? "none" : `${from + 1} to ${to} of ${count}`}`, columns, d3.range(from, to).map(row)));
    back.disabled = page === 0;
    on.disabled = to >= count;
  };
  const back = button("Before", () => { --page; show(); }), on = button("Next", () => { ++page; show(); });
  head.append(back, on);
  show();
  return count > each ? [place, head] : [place];
}

function showTables() {
  if (by("tables-text").childElementCount > 0) return;
  const moment = (ns) => momentText(ns, whole / 1000);
  by("tables-text").append(
    ...pagedTable("Kernels", [["kernel", ""], ["phase", ""], ["starts", "number"], ["ends", "number"], ["waited", ""]], kernels.count,
                  (k) => [kernelText(k), kernels.phase[k], moment(kernels.start[k]), moment(kernels.end[k]), kernels.cause[k] ?? ""]),
    ...pagedTable("Transfers", [["tensor", ""], ["what", ""], ["begins", "number"], ["ends", "number"]], transfers.count,
                  (i) => [transfers.tensor[i] === null ? "unknown" : tensors.name[transfers.tensor[i]], transferText(i), moment(transfers.begin[i]), moment(transfers.end[i])]),
    ...pagedTable("Memory in use", [["at", "number"], ["device", "number"], ["host", "number"], ["SSD", "number"]], levels.count,
                  (i) => [moment(levels.at[i]), sizeText(levels.device[i]), sizeText(levels.host[i]), sizeText(levels.ssd[i])]));
}
