#!/usr/bin/env python3
"""Trains one of the examples with less and less memory, under each policy, beside its peers, and prints the ratios.

  bench/training.py SPILLWAY train_resnet [--parts 75,50,35] [--policies tuned,uvm,deepum,g10,auto,swap] [--rounds 3] [--steps 16]
                    [--json FILE] [-- ARGUMENTS]

The peers are PyTorch by itself, PyTorch with an allocator tuned by hand (`tuned`: glibc's on huge pages, which gives nothing back to the
system), and the operating system's swap: a memory control group that gives the script as much as it takes in all
under `auto` with that budget, and a swap file. That needs root; where it is not permitted, it is left out, and why is said.
The policy `recorded` is `auto` with --record: what the journal costs. `moves` is the unlimited run beside another process that does nothing
but read and write the bytes that the budget of `auto` forces to move, in as much time as it took for an iteration (transfers.py): what moving
takes from kernels on this machine.

Runs are interleaved: each round runs every cell once. A figure is the median of the last five iterations of all rounds, and its
spread the distance between the quartiles over the median; `waits` is the part of it in which some thread waited for memory, which other
programs change least, and `at least` what no plan can do without at the rates measured. The bound is the unlimited run (beside the moves, where
that was measured) with these waits, or what the bytes that must move take at those rates, whichever is longer. A run during which other
processes used more than a tenth of a core is marked with "!" and repeated once; one whose last five were not all of one phase (a plan came
or went among them: more steps are needed), with "~". A cell whose script fails (the system kills what swaps too much) is told below the
table and left out. Losses and weights must be equal in all cells."""

import argparse
import collections
import contextlib
import itertools
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples")
LAST = 5  # iterations of a run that count: a plan is followed by then
FOREIGN = 0.1  # cores that others may use
TUNED = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=17179869184:glibc.malloc.trim_threshold=17179869184"


def busy_seconds():
    """CPU time that all processes of the machine have used, or others have taken from it, and of that what our ended children have."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, steal, *_ = map(int, file.readline().split()[1:])
    own = os.times()
    tick = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq + steal) / tick, own.children_user + own.children_system


@contextlib.contextmanager
def running(command):
    """Beside what is done meanwhile; None: nothing."""
    if command is None:
        yield
        return
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        if other.stdout.readline() != "ready\n":
            sys.exit(f"{' '.join(command)} did not begin")
        yield
        if other.poll() is not None:
            sys.exit(f"{' '.join(command)} ended before what it was to disturb")
    finally:
        other.kill()
        other.wait()


class Failed(Exception):
    """The script did not end well: how."""


class Run:
    """One training run: what it printed, how long its steps took, and what Spillway says of it."""

    def __init__(self, command, report=None, beside=None):
        machine, children = busy_seconds()
        with running(beside):
            begin = time.monotonic()
            with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
                process = subprocess.Popen(command, stdout=output, stderr=errors)
                try:
                    process.wait()
                finally:
                    process.terminate()  # If we are ended first.
                output.seek(0)
                errors.seek(0)
                printed, complaints = output.read(), errors.read()
        elapsed = time.monotonic() - begin
        machine_after, children_after = busy_seconds()
        if process.returncode != 0:
            raise Failed(f"{' '.join(command)} ended with status {process.returncode}:\n{complaints[-2000:]}")
        self.foreign_cores = max(0, machine_after - machine - (children_after - children)) / elapsed
        self.results = re.findall(r"^(?:step \d+ loss|evaluation loss|weights) (\S+)", printed, re.M)
        self.seconds = [float(s) for s in re.findall(r"^step .* seconds (\S+)", printed, re.M)][-LAST:]
        self.report = None
        if report:
            with open(report, encoding="utf-8") as file:
                self.report = json.load(file)


class Swap:
    """A swap file, and control groups that leave a script only so much memory. Raises OSError where that is not permitted."""

    def __init__(self, folder, size):
        self.groups = []
        root = "/sys/fs/cgroup"
        self.new = os.path.exists(f"{root}/cgroup.controllers")
        self.root = root if self.new else f"{root}/memory"
        self.file = os.path.join(folder, "swap")
        try:
            self.command(size, [])  # A group with a limit can be made.
            with open(self.file, "wb") as file:
                os.chmod(self.file, 0o600)
                os.posix_fallocate(file.fileno(), 0, size)
            for command in (["mkswap", self.file], ["swapon", self.file]):
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    raise OSError(done.stderr.strip())
        except OSError:
            self.remove_groups()
            raise

    def most_used(self, command):
        """By it and all that it starts. What it maps of files that lie in memory already is not charged to it."""
        Run(self.command(None, command))
        name = "memory.peak" if self.new else "memory.max_usage_in_bytes"
        with open(f"{self.groups[-1]}/{name}", encoding="ascii") as file:
            return int(file.read())

    def command(self, limit, script):
        group = f"{self.root}/spillway-bench-{os.getpid()}-{len(self.groups)}"
        os.mkdir(group)
        self.groups.append(group)
        if limit:
            with open(f"{group}/{'memory.max' if self.new else 'memory.limit_in_bytes'}", "w", encoding="ascii") as file:
                file.write(str(limit))
        return ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh", *script]

    def end(self):
        off = subprocess.run(["swapoff", self.file], capture_output=True, text=True, check=False)
        if off.returncode != 0:
            print(f"{self.file} is still used for swapping: {off.stderr.strip()}", file=sys.stderr)
        self.remove_groups()

    def remove_groups(self):
        for group in self.groups:
            try:
                os.rmdir(group)
            except OSError as error:
                print(f"{group} is left: {error}", file=sys.stderr)


class Cell:
    """One way to run the script."""

    def __init__(self, name, command, report=None, beside=lambda: None):
        """`beside`: the command that is to run meanwhile, if any."""
        self.name, self.command, self.report, self.beside = name, command, report, beside
        self.runs = []
        self.results = []  # of these, and of those that were disturbed more
        self.failed = None  # how, once it has

    def run(self):
        run = self.one_run()
        if run.foreign_cores > FOREIGN:
            run = min(run, self.one_run(), key=lambda one: one.foreign_cores)
        self.runs.append(run)
        return run

    def run_unless_failed(self):
        if not self.failed:
            try:
                self.run()
            except Failed as failure:
                self.failed = str(failure)

    def one_run(self):
        run = Run(self.command, self.report, self.beside())
        self.results.append(run.results)
        return run

    def figures(self):
        seconds = [s for run in self.runs for s in run.seconds]
        quartiles = statistics.quantiles(seconds, n=4)
        median = statistics.median(seconds)
        figures = {"name": self.name, "seconds": median, "spread": (quartiles[2] - quartiles[0]) / median,
                   "disturbed": any(run.foreign_cores > FOREIGN for run in self.runs)}
        reports = [run.report for run in self.runs if run.report]
        figures["mixed"] = any(len({iteration["phase"] for iteration in report["iterations"][-LAST:]}) > 1 for report in reports)
        if reports:
            last = reports[-1]
            ended = [iteration for report in reports for iteration in report["iterations"][-LAST:]]
            for figure in ("faults", "waited_seconds", "moved_in_bytes", "moved_out_bytes"):
                figures[figure] = statistics.median(iteration[figure] for iteration in ended)
            plan = last["plan"]
            if plan:
                kept = [r["plan"] for r in reports if r["plan"] and r["plan"]["given_up_at_iteration"] is None]
                if kept:  # Others say nothing of the iterations at the end.
                    figures["predicted_seconds"] = statistics.median(
                        plan["predicted_seconds"] / plan["optimizer_steps"] for plan in kept
                    )
                figures["policy"] = plan["policy"]
                for figure in ("link_bound_seconds", "least_wait_seconds", "least_in_bytes", "least_out_bytes"):
                    figures[figure] = plan[figure] / plan["optimizer_steps"]
                before = plan["adopted_at_iteration"] - 1
                figures["seconds_before_plan"] = sum(i["seconds"] for i in last["iterations"][:before])
        return figures


def cells(options, folder):
    script = [sys.executable, os.path.join(EXAMPLES, options.example + ".py"), "--steps", str(options.steps)]
    script += options.arguments

    def limited(name, policy, memory, *more, beside=lambda: None):
        report = os.path.join(folder, name.replace(" ", "-") + ".json")
        return Cell(name, [options.spillway, "run", "--quiet", "--device-memory", memory, "--policy", policy, "--json", report,
                           *more, "--", *script], report, beside)

    def moves_of(cell):
        """What must move in an iteration of that cell, in as much time."""
        figures = {} if cell.failed else cell.figures()
        if "least_in_bytes" not in figures:
            raise Failed(f"{cell.name} made no plan, so that what must move is not known: leave out `moves`")
        rates = [str(figures[f"least_{way}_bytes"] / figures["seconds"]) for way in ("in", "out")]
        return [sys.executable, os.path.join(EXAMPLES, "..", "bench", "transfers.py"), options.scratch, *rates]

    everything = f"{os.sysconf('SC_AVPHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') * 8 // 10 >> 20}MiB"
    unlimited = limited("unlimited", "auto", everything)
    peak = unlimited.run().report["peak_device_bytes"]
    unlimited.runs.clear()  # It only told the peak.
    result = [Cell("PyTorch alone", script), unlimited]
    if "tuned" in options.policies:
        result.insert(1, Cell("PyTorch tuned", ["env", TUNED, *script]))
    try:
        if "swap" in options.policies:
            options.swap = Swap(options.scratch, 2 * peak)
    except OSError as error:
        print(f"the operating system's swap is left out: {error}", file=sys.stderr)
    for part in options.parts:
        memory = f"{peak * part // 100 >> 20}MiB"
        for policy in options.policies:
            if policy == "recorded":
                record = os.path.join(options.scratch, f"record-{part}")
                result.append(limited(f"recorded at {part} %", "auto", memory, "--record", record))
            elif policy == "moves":
                auto = next((cell for cell in result if cell.name == f"auto at {part} %"), None)
                if auto is None:
                    sys.exit("`moves` moves what `auto` must: name `auto` before it")
                result.append(limited(f"moves at {part} %", "auto", everything, beside=lambda auto=auto: moves_of(auto)))
            elif policy not in ("swap", "tuned"):
                result.append(limited(f"{policy} at {part} %", policy, memory))
        if options.swap:
            most_used = options.swap.most_used(limited("measured", "auto", memory).command)
            result.append(Cell(f"swap at {part} %", options.swap.command(most_used, script)))
    return peak, result


def different_results(all_cells):
    """The runs that did not print what most did, each with the first line in which it differs."""
    runs = [(cell.name, number, results) for cell in all_cells for number, results in enumerate(cell.results, 1)]
    usual = collections.Counter(tuple(results) for _, _, results in runs).most_common(1)[0][0]
    different = []
    for name, number, results in runs:
        pairs = enumerate(itertools.zip_longest(usual, results, fillvalue="nothing"))
        line = next((line for line, (expected, printed) in pairs if expected != printed), None)
        if line is not None:
            printed = results[line] if line < len(results) else "nothing"
            different.append(f"{name}, run {number}: line {line + 1} of {len(usual)} is {printed}")
    return different


def print_table(rows):
    unlimited = next(row["seconds"] for row in rows if row["name"] == "unlimited")
    names = [row["name"] + " !" * row["disturbed"] + " ~" * row["mixed"] for row in rows]
    width = max(16, *map(len, names))
    print(f"{'':<{width}}{'s/iteration':>12}{'spread':>8}{'of unlimited':>14}{'of the bound':>14}{'waits':>8}{'at least':>10}"
          f"{'faults':>8}{'predicted':>11}{'in':>10}{'out':>10}{'of the least':>15}{'s to plan':>11}")
    for name, row in zip(names, rows, strict=True):
        row = least_of(rows, row) | row
        part = row["name"].partition(" at ")[2]
        kernels = next((other["seconds"] for other in rows if other["name"] == f"moves at {part}"), unlimited)
        if row["name"].startswith("moves"):
            row["least_wait_seconds"] = row["link_bound_seconds"] = 0  # It has all the memory.
        bound = max(kernels + row.get("least_wait_seconds", 0), row.get("link_bound_seconds", 0))
        predicted = row.get("predicted_seconds")
        error = f"{predicted / row['seconds'] - 1:+.1%}" if predicted else ""
        print(f"{name:<{width}}{row['seconds']:>12.3f}{row['spread']:>8.1%}"
              f"{unlimited / row['seconds']:>14.1%}{bound / row['seconds']:>14.1%}"
              f"{row.get('waited_seconds', 0):>8.3f}{row.get('least_wait_seconds', 0):>10.3f}{row.get('faults', 0):>8.0f}{error:>11}"
              f"{mebibytes(row, 'moved_in_bytes'):>10}{mebibytes(row, 'moved_out_bytes'):>10}"
              f"{of_the_least(row, 'in') + ' ' + of_the_least(row, 'out'):>15}{row.get('seconds_before_plan', 0):>11.1f}")


def least_of(rows, row):
    """What any way to run it with as much memory must move, as a planned one found it."""
    part = row["name"].partition(" at ")[2]
    planned = (other for other in rows if other["name"].endswith(" at " + part) and "least_in_bytes" in other)
    return {key: value for key, value in next(planned, {}).items() if key.startswith(("least_", "link_bound_"))} if part else {}


def mebibytes(row, figure):
    return f"{row.get(figure, 0) / 2**20:.0f} MiB"


def of_the_least(row, way):
    """What moved that way in an iteration over what must, whoever decides."""
    least = row.get(f"least_{way}_bytes", 0)
    moved = row.get(f"moved_{way}_bytes")  # Unlimited runs move nothing.
    return f"{moved / least:.2f}" if least and moved else "-"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spillway")
    parser.add_argument("example")
    parser.add_argument("--parts", default="75,50,35", help="of the peak, in percent (default %(default)s)")
    parser.add_argument("--policies", default="tuned,uvm,deepum,g10,auto,swap", help="and recorded, and, after auto, moves; '': what a run that fits costs (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each cell (default %(default)s)")
    parser.add_argument("--steps", type=int, default=16, help="of each run (default %(default)s)")
    parser.add_argument("--json", help="write the figures there")
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options = parser.parse_args(sys.argv[1:end])
    options.arguments = sys.argv[end + 1:]
    if options.steps < 2:
        parser.error("argument --steps: a spread needs two steps at least")
    options.parts = [int(part) for part in options.parts.split(",")]
    options.policies = [policy for policy in options.policies.split(",") if policy]
    options.swap = None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # The swap file must not outlive us.
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(dir="/var/tmp") as options.scratch:
        try:
            peak, all_cells = cells(options, folder)
            for number in range(options.rounds):
                for cell in all_cells:
                    print(f"round {number + 1} of {options.rounds}: {cell.name}", file=sys.stderr, flush=True)
                    cell.run_unless_failed()
        except Failed as failure:
            sys.exit(str(failure))
        finally:
            if options.swap:
                options.swap.end()
        failures = {cell.name: cell.failed for cell in all_cells if cell.failed}
        if "unlimited" in failures:  # What all others are compared with.
            sys.exit(failures["unlimited"])
        others = different_results(all_cells)
        rows = [cell.figures() for cell in all_cells if not cell.failed]
    print(f"{options.example} {' '.join(options.arguments)}: peak {peak / 2**20:.0f} MiB, {options.rounds} rounds of "
          f"{options.steps} steps, medians of the last {LAST}")
    print_table(rows)
    print("losses and weights: " + ("DIFFERENT" if others else "equal in all cells"))
    for other in others:
        print(f"  {other}")
    for name, failure in failures.items():
        print(f"{name} is left out: {failure}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"example": options.example, "peak_bytes": peak, "rows": rows, "different": others, "failed": failures}, file, indent=2)
    return 1 if others or failures else 0


if __name__ == "__main__":
    sys.exit(main())
