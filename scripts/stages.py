"""stages.py STAGES LOG: passes CTest's output on, and puts a table of the stages before its summary: what STAGES says took so many
seconds, and the tests by their kind. LOG, CTest's own, has what the tests printed: the cases that they skipped, and why."""

import collections
import re
import signal
import sys
import time
from pathlib import Path

KINDS = ("asan", "tsan", "fuzz", "lint", "tidy", "torch", "golden", "e2e")
SUMMARY = re.compile(r"\d+% tests passed, \d+ tests failed out of \d+$")
RESULT = re.compile(r"\s*\d+/\d+ Test\s+#\d+: (\S+) .*?([\d.]+) sec")


def row(what, seconds, processes=""):
    print(f"  {what:<52} {seconds:6.0f} s {processes:>9}")


def table(stages, tests, seconds):
    print("\nStages                                                  seconds  processes")
    for what, taken in stages:
        row(what, taken)
    row("Running the tests", seconds)
    print("Tests by kind: the sum of their seconds, several run at a time")
    kinds = collections.defaultdict(list)
    for name, taken in tests.items():
        kind = name.partition(".")[0]
        kinds[kind if kind in KINDS else "release build"].append(taken)
    for kind, taken in sorted(kinds.items(), key=lambda one: -sum(one[1])):
        row(kind, sum(taken), len(taken))
    print("The longest tests")
    for name, taken in sorted(tests.items(), key=lambda one: -one[1])[:8]:
        row(name if len(name) <= 52 else name[:49] + "...", taken)


def skipped(log):
    """Reason -> how many cases of GoogleTest programs were skipped for it. CTest counts a suite that has others as passed."""
    return collections.Counter(re.findall(r": Skipped\n(.*)\n", log.read_text(errors="replace")) if log.exists() else [])


def main():
    stages = [(what, float(taken)) for what, taken in (line.split("\t") for line in Path(sys.argv[1]).read_text().splitlines())]
    tests, summary, began = {}, [], time.monotonic()
    sys.stdin.reconfigure(errors="replace")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # CTest ends then, and the table follows.
    for line in sys.stdin:
        if result := RESULT.match(line):
            tests[result[1]] = float(result[2])
        if result or SUMMARY.match(line):
            print(*summary, sep="", end="")  # That was no summary but what a test printed.
            summary = []
        if summary or SUMMARY.match(line):
            summary.append(line)
            continue
        print(line, end="", flush=True)
    # CTest has ended, and its log is whole.
    table(stages, tests, time.monotonic() - began)
    for reason, cases in skipped(Path(sys.argv[2])).most_common():
        print(f"Skipped {cases} cases of unit tests: {reason}")
    print("\n" + "".join(summary), end="", flush=True)


main()
