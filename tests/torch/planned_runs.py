"""planned_runs.py SPILLWAY: a script with half the memory that it needs is planned for once an iteration has repeated itself, and
goes on with few page faults, with the results of a run that has all the memory."""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "..", "examples")


def run(spillway, memory, policy, *script):
    """The lines of the script without its times, and the report."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.json")
        command = [spillway, "run", "--device-memory", memory, "--policy", policy, "--json", path, "--", sys.executable]
        command += [os.path.join(EXAMPLES, script[0]), *script[1:]]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
    check(done.returncode == 0, done.stderr)
    return [line.partition(" seconds")[0] for line in done.stdout.splitlines()], report


def check(condition, *evidence):
    if not condition:
        raise AssertionError("\n".join(map(str, evidence)))


def main():
    spillway = sys.argv[1]
    script = ("train_resnet.py", "--batch", "4", "--size", "96", "--steps", "8")
    expected, unlimited = run(spillway, "4GiB", "auto", *script)
    check(unlimited["plan"] is None and unlimited["faults"] == 0, "what fits was planned for", unlimited)
    half = f"{unlimited['peak_device_bytes'] // 2 >> 20}MiB"
    for policy in ("auto", "g10-once"):
        printed, report = run(spillway, half, policy, *script)
        check(printed == expected, printed, expected)
        check(report["plan"] and report["plan"]["adopted_at_iteration"] <= 6, report)
        check(policy == "auto" or report["plan"]["policy"] == policy, report["plan"])
        paged, planned = report["iterations"][2]["faults"], report["iterations"][-1]["faults"]
        check(paged > 50 and planned * 10 < paged, report["iterations"])
        check(report["peak_device_bytes"] <= report["device_budget_bytes"], report)
        print("ok", policy, "faults", [iteration["faults"] for iteration in report["iterations"]], flush=True)


if __name__ == "__main__":
    main()
