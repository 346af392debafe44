"""given_plans.py SPILLWAY: the plan that a run has followed and written is followed by the next run, with the same results, and opens in
`spillway show`; a plan for another iteration, or one that makes no sense, is refused with what does not match, and the run plans by itself."""

import json
import os
import random
import subprocess
import tempfile

import cases
from cases import check, long, main, normal, read_json, script


def run(spillway, width, *options):
    """The script's lines, and the report."""
    done, report = cases.run(spillway, script("two_layers.py", str(width)), *options, memory="64MiB")
    check(done.returncode == 0, done.stderr)
    return done.stdout, report


def changed(plan, folder, **fields):
    path = os.path.join(folder, "changed.plan")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(plan | fields, file)
    return path


def commands(trace, chance):
    """As many moves as make sense, at random moments: most leave too early, come too late, or need not move at all."""
    uses = {}
    for number, kernel in enumerate(trace["kernels"]):
        for access in kernel["reads"] + kernel["writes"]:
            uses.setdefault(access if isinstance(access, int) else access["tensor"], set()).add(number)
    evictions, prefetches = [], []
    for tensor, kernels in uses.items():
        used = sorted(kernels)
        for last, next_use in zip(used, used[1:]):
            if next_use > last + 1 and chance.random() < 0.9:
                evictions.append({"tensor": tensor, "after_kernel": last, "to": "ssd"})
                prefetches.append({"tensor": tensor, "at_kernel": chance.randrange(last + 1, next_use)})
    return {"evictions": sorted(evictions, key=lambda one: one["after_kernel"]),
            "prefetches": sorted(prefetches, key=lambda one: one["at_kernel"])}


@long()
def a_plan_made_wrong_on_purpose_changes_no_result(spillway):
    with tempfile.TemporaryDirectory() as folder:
        expected, _ = run(spillway, 2048, "--policy", "g10", "--record", folder)
        plan, trace = read_json(folder, "blocks.plan"), read_json(folder, "blocks.trace")
        for seed in (1, 2):
            wrong = changed(plan, folder, **commands(trace, random.Random(seed)))
            printed, report = run(spillway, 2048, "--plan", wrong)
            check(report["plan"] and report["plan"]["read_from"] == wrong, seed, report["plan"], report["notices"])
            check(printed == expected, seed, printed, expected)
            print("ok a wrong plan, faults", [iteration["faults"] for iteration in report["iterations"]], flush=True)


@normal()
def plans_of_other_runs(spillway):
    with tempfile.TemporaryDirectory() as folder:
        expected, first = run(spillway, 2048, "--policy", "g10", "--record", folder)
        check(first["plan"] and first["plan"]["read_from"] is None, first)
        file = first["plan_file"]
        check(file == os.path.join(folder, "blocks.plan"), file)
        shown = subprocess.run([spillway, "show", file], capture_output=True, text=True, check=True).stdout
        check(" evictions (" in shown and "aten::mm" in shown, shown)
        shown = subprocess.run([spillway, "show", file, "--json"], capture_output=True, text=True, check=True).stdout
        plan = read_json(file)
        check(json.loads(shown)["moves"] == len(plan["evictions"]) + len(plan["prefetches"]) > 0, shown)
        print("ok the plan is written and shown", flush=True)

        printed, report = run(spillway, 2048, "--plan", file, "--record", os.path.join(folder, "again"))
        check(printed == expected and report["plan"]["read_from"] == file, report["plan"], report["notices"])
        again = read_json(report["plan_file"])
        check(all(again[key] == plan[key] for key in ("policy", "evictions", "prefetches")), again)
        print("ok the next run follows it", flush=True)

        _, report = run(spillway, 2304, "--plan", file)
        check("it was made for another iteration than this run's: it has " in "".join(report["notices"]), report["notices"])
        check(not report["plan"] or report["plan"]["read_from"] is None, report["plan"])
        bad = changed(plan, folder, evictions=[{"tensor": 4_000_000_000, "after_kernel": 0, "to": "ssd"}])
        printed, report = run(spillway, 2048, "--plan", bad)
        check("evictions[0]: there is no tensor 4000000000" in "".join(report["notices"]), report["notices"])
        check(printed == expected and (not report["plan"] or report["plan"]["read_from"] is None), report["plan"])
        print("ok another iteration's plan and a senseless one are refused", flush=True)


main()
