#!/usr/bin/env python3
"""side_by_side.py ALL HALF: prints two runs (ALL.txt, ALL.json and so on) beside each other; status 1 if they computed
different things, for that is the one thing that less memory must never change."""
import json
import re
import statistics
import sys


def load(name):
    with open(name + ".txt") as text, open(name + ".json") as report:
        output, facts = text.read(), json.load(report)
    steps = re.findall(r"^step \d+ loss (\S+) seconds (\S+)", output, re.M)
    weights = re.findall(r"^weights (\w+)", output, re.M)
    if not steps or not weights:
        sys.exit(f"{name}.txt has no steps or no weights: the training did not finish")
    return [loss for loss, _ in steps], [float(seconds) for _, seconds in steps], weights[-1], facts


def size(count):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.2f} {unit}"
        count /= 1024


def row(name, left, right, remark=""):
    print(f"  {name:<34} {left:>22} {right:>22}  {remark}".rstrip())


def main():
    (losses, seconds, weights, report), (losses2, seconds2, weights2, report2) = load(sys.argv[1]), load(sys.argv[2])
    row("", "all the memory", "half of it")
    row("device budget", size(report["device_budget_bytes"]), size(report2["device_budget_bytes"]))
    row("peak on the device", size(report["peak_device_bytes"]), size(report2["peak_device_bytes"]))
    for number, (loss, loss2) in enumerate(zip(losses, losses2)):
        row(f"loss of step {number}", loss, loss2, "equal" if loss == loss2 else "DIFFERENT")
    row("weights (SHA-256)", weights[:16] + "…", weights2[:16] + "…", "equal" if weights == weights2 else "DIFFERENT")
    # The first step also imports, allocates and makes the optimizer's state: not what an iteration costs.
    median, median2 = statistics.median(seconds[1:] or seconds), statistics.median(seconds2[1:] or seconds2)
    row("seconds per iteration (median)", f"{median:.2f} s", f"{median2:.2f} s", f"{median2 / median:.2f} times as long")
    # Over the whole run, the first step and what is before it included.
    waits = (f"{each['stall_seconds'] / max(len(each['iterations']), 1):.2f} s" for each in (report, report2))
    row("waiting for memory, mean of all", *waits)
    row("faults", report["faults"], report2["faults"])
    for link in ("device_to_ssd", "ssd_to_device", "device_to_host", "host_to_device"):
        moved = [r["moved_bytes"][link] for r in (report, report2)]
        if any(moved) or "ssd" in link:
            row("moved, " + link.replace("_", " "), size(moved[0]), size(moved[1]))
    row("how blocks left the device", report["eviction_path"], report2["eviction_path"])
    if (losses, weights) != (losses2, weights2):
        sys.exit("The two runs computed different things. This must never happen: please report it with demo-output/.")


main()
