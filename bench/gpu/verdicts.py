"""What the runs mean: a line for each run, and a verdict for each target."""

import dataclasses

from models import PEERS, RANDOM, STRICT, WHOLE

HOLDS, NOT, NOT_REACHED, NO_USE = "holds", "does not hold", "not reached", "does not apply"
OTHERS = ("plain", *PEERS)  # without Spillway


@dataclasses.dataclass
class Verdict:
    target: str
    model: str
    verdict: str
    text: str


def last_line(text):
    return text.strip().splitlines()[-1]


def why_not(ran):
    """Why a run has told nothing; None: it has."""
    if "lines" in ran:
        return None
    if ran.get("out_of_memory"):
        return "out of memory"
    if "error" in ran:
        report = ran.get("report") or {}
        too_large = [notice for notice in report.get("notices", []) if "one launch uses" in notice]
        return "failed: " + (report.get("error") or (too_large or [last_line(ran["error"])])[0])
    return ran.get("not_reached", "not asked")


def bound_of(ran, plain):
    """max(kernels, links): no way to run it is faster. And whether the links are the longer one."""
    plan = ran["report"]["plan"]
    links = plan["link_bound_seconds"] / plan["optimizer_steps"] if plan else 0
    return max(plain["seconds"], links), links > plain["seconds"]


def before_hand(runs, run):
    """What an iteration with this part of the memory was simulated to take before it was tried."""
    if not run.endswith("%"):
        return None
    predictions = ((runs.get(WHOLE) or {}).get("report") or {}).get("predictions", [])
    part = int(run.split()[0]) / 100
    return next((p["seconds_per_iteration"] for p in predictions if abs(p["part_of_peak"] - part) < 0.001), None)


def figures_of(model, run, runs):
    """All that a run tells in numbers; those that are not known are left out."""
    ran, plain = runs[run], runs.get("plain") or {}
    figures = {"seconds": ran.get("seconds")}
    if ran.get("seconds") and model:
        figures[f"{model.of}_per_second"] = model.made / ran["seconds"]
        if plain.get("seconds"):
            figures["of_plain"] = ran["seconds"] / plain["seconds"]
    report = ran.get("report")
    if report:
        plan = report["plan"]
        figures |= {"device_memory_bytes": report["device_budget_bytes"], "peak_bytes": report["peak_device_bytes"],
                    "stall_seconds": report["stall_seconds"], "simulated_before": before_hand(runs, run)}
        if plan:
            figures |= {"policy": plan["policy"], "predicted_seconds": plan["predicted_seconds"] / plan["optimizer_steps"],
                        "link_bound_seconds": plan["link_bound_seconds"] / plan["optimizer_steps"]}
    elif ran.get("peak"):
        figures["peak_bytes"] = ran["peak"]
    return {key: value for key, value in figures.items() if value is not None}


def line_of(name, run, model, runs):
    why = why_not(runs[run])
    if why:
        return f"{name:<22}{run:<16}{why}"
    figures = figures_of(model, run, runs)
    if "seconds" not in figures:
        return f"{name:<22}{run:<16}{runs[run]['wall_seconds']:.0f} s, {runs[run]['lines'][-1]}"
    second = f"{model.of}_per_second"
    parts = [f"{figures['seconds']:9.4f} s a step", f"{figures[second]:9.0f} {model.of}/s"]
    for key, words in (("of_plain", "{:.3f} of plain"), ("simulated_before", "{:.4f} s simulated before"), ("predicted_seconds", "{:.4f} s predicted"),
                       ("link_bound_seconds", "links {:.4f} s"), ("policy", "plan {}")):
        if key in figures:
            parts.append(words.format(figures[key]))
    if "peak_bytes" in figures:
        parts.append(f"peak {figures['peak_bytes'] >> 20} MiB")
    return f"{name:<22}{run:<16}{', '.join(parts)}"


def same_bits(runs):
    plain = runs.get("plain") or {}
    ours = {run: ran for run, ran in runs.items() if run not in (*OTHERS, STRICT)}
    if plain.get("out_of_memory"):
        return None  # It has nothing to be compared with.
    reached = {run: ran for run, ran in ours.items() if "lines" in ran}
    if "lines" not in plain or not reached:
        return NOT_REACHED, why_not(plain) or "no run of Spillway's"
    different = [run for run, ran in reached.items() if ran["lines"] != plain["lines"]]
    if different:
        run = different[0]
        pairs = zip(plain["lines"], reached[run]["lines"], strict=False)
        first = next((f"{a!r} became {b!r}" for a, b in pairs if a != b), "fewer or more lines")
        return NOT, f"{', '.join(different)}: {first}"
    return HOLDS, ", ".join(reached) + f": {len(plain['lines'])} lines"


def at_most(runs, run, most, of):
    """Whether a run takes at most so many times as long as `of` says, which also says what it is compared with."""
    ran, plain = runs.get(run) or {}, runs.get("plain") or {}
    why = why_not(ran) or why_not(plain)
    if why:
        return NOT if "error" in ran else NOT_REACHED, why
    seconds, words = of(runs, run)
    ratio = ran["seconds"] / seconds
    return HOLDS if ratio <= most else NOT, f"{ratio:.3f} of {words}"


def plain_of(runs, _):
    return runs["plain"]["seconds"], f"plain PyTorch's {runs['plain']['seconds']:.4f} s"


def bound_in_words(runs, run):
    bound, by_links = bound_of(runs[run], runs["plain"])
    words = f"the {bound:.4f} s that the {'links' if by_links else 'kernels'} take"
    before, why = before_hand(runs, run), runs[run]["report"]["no_plan_because"]
    if before:
        words += f", {runs[run]['seconds'] / before:.3f} of the {before:.4f} s simulated before"
    return bound, words + (f"; no plan: {why}" if why else "")


def saves(runs, peer):
    """Whether the peer needs clearly less memory than plain PyTorch. It is no peer where it does not."""
    peak, of_plain = (runs.get(peer) or {}).get("peak"), (runs.get("plain") or {}).get("peak")
    return not peak or not of_plain or peak < 0.9 * of_plain


def beside_peer(runs, peer, least):
    theirs, ours = runs.get(peer) or {}, runs.get(f"as {peer}") or {}
    why = why_not(theirs)
    if why:
        return NOT_REACHED, f"{peer}: {why}"
    if not saves(runs, peer):
        return NO_USE, f"{peer} needs {theirs['peak'] >> 20} MiB of the device, plain PyTorch {runs['plain']['peak'] >> 20} MiB"
    if why_not(ours):
        return NOT if "error" in ours else NOT_REACHED, why_not(ours)
    ratio = theirs["seconds"] / ours["seconds"]
    return HOLDS if ratio >= least else NOT, f"{ratio:.2f} times as fast, with {theirs['peak'] >> 20} MiB"


def trains(runs, run, model):
    ran, plain = runs.get(run) or {}, runs.get("plain") or {}
    why = why_not(ran)
    if why:
        return NOT if "error" in ran else NOT_REACHED, why
    beside = f"plain PyTorch: {why_not(plain)}" if why_not(plain) else f"plain PyTorch with all memory {plain['seconds']:.4f} s"
    return HOLDS, f"{ran['seconds']:.4f} s a step, {model.made / ran['seconds']:.0f} {model.of}/s; {beside}"


def strict(runs):
    """A miss ends it, and a notice in the report names it."""
    ran = runs[STRICT]
    report = ran.get("report") or {}
    if why_not(ran):
        return NOT if "error" in ran else NOT_REACHED, "; ".join([why_not(ran), *report.get("notices", [])])
    if why_not(runs["plain"]):
        return NOT_REACHED, f"plain PyTorch: {why_not(runs['plain'])}"
    steps = [line for line in ran["lines"] if line.startswith("step ")]
    if not steps:
        return NOT, "it has printed no step"
    if steps != runs["plain"].get("lines", [])[: len(steps)]:
        return NOT, "other losses than plain PyTorch's"
    return HOLDS, f"no miss in {len(steps)} steps, {report['gpu'].get('checked_launches', 'all')} launches checked"


def programs(runs):
    limited = runs.get("limited") or {}
    why = why_not(runs.get("plain") or {}) or why_not(limited)
    if why:
        return NOT if "error" in limited else NOT_REACHED, why
    return HOLDS, limited["lines"][-1]


def verdicts_of(models, results, asked):
    """Of all targets, whether the runs that tell were reached or not."""
    found = []

    def add(target, model, verdict):
        if verdict:
            found.append(Verdict(target, model, *verdict))

    for name, model in models.items():
        runs = {run: results.get(name, {}).get(run) or {} for of, run in asked if of == name}
        if not runs:
            continue
        add("same losses and weights", name, same_bits(runs))
        if model.memory:
            add(f"trains with {model.memory}", name, trains(runs, model.memory, model))
            continue
        for run in (WHOLE, "110 %"):
            if run in runs:
                add(f"fits ({run}): within 1 %", name, at_most(runs, run, 1.01, plain_of))
        for run in ("75 %", "50 %", model.least):
            if run in runs:
                add(f"{run} of its peak: within 5 %", name, at_most(runs, run, 1.05, bound_in_words))
        for peer, least in PEERS.items():
            if f"as {peer}" in runs:
                add(f"{least:g} times {peer}", name, beside_peer(runs, peer, least))
        if STRICT in runs:
            add("strict: no miss", name, strict(runs))
    if any(of == RANDOM for of, _ in asked):
        add("the same", RANDOM, programs(results.get(RANDOM, {})))
    return found


def table_of(verdicts):
    lines = [f"{v.target:<30}{v.model:<22}{v.verdict:<15}{v.text}" for v in verdicts]
    count = {kind: sum(v.verdict == kind for v in verdicts) for kind in (HOLDS, NOT, NOT_REACHED, NO_USE)}
    return "\n".join([*lines, ", ".join(f"{number} {kind}" for kind, number in count.items() if number)])
