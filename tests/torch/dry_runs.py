"""dry_runs.py SPILLWAY: a script on PyTorch's device `meta` is recorded as if it had run."""

import collections
import json
import os
import subprocess
import sys
import tempfile

from cases import EXAMPLES, check, main, normal, quick, read_json, script


def trace(spillway, *arguments, options=()):
    """The trace, or None, and what was said."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.trace")
        done = subprocess.run([spillway, "trace", *options, "-o", path, "--", *script("on_meta.py", *arguments)], capture_output=True,
                              text=True, timeout=300)
        return read_json(path) if os.path.exists(path) else None, done


def tensors_of(kernel, key):
    return {access if isinstance(access, int) else access["tensor"] for access in kernel[key]}


def lives(recorded):
    """(first kernel, last kernel, bytes) of each tensor, but for those that live within one kernel and those of a few numbers: a dry run
    has none of the ones, and scalars of the others are on the CPU."""
    kernels, tensors = recorded["kernels"], recorded["tensors"]
    first, last = {}, {}
    for at, kernel in enumerate(kernels):
        for tensor in tensors_of(kernel, "reads") | tensors_of(kernel, "writes"):
            first.setdefault(tensor, at)
            last[tensor] = at
    for at, kernel in enumerate(kernels):
        last.update(dict.fromkeys(kernel["frees"], at))
    for tensor, one in enumerate(tensors):
        if one["persistent"] or "carried_from" in one:
            first[tensor], last[tensor] = (0, len(kernels) - 1) if one["persistent"] else (first.get(tensor, 0), len(kernels) - 1)
    return [(first[t], last[t], one["bytes"]) for t, one in enumerate(tensors) if t in first and one["kind"] != "workspace" and one["bytes"] > 8]


def peak(recorded):
    return max(sum(size for first, last, size in lives(recorded) if first <= at <= last) for at in range(len(recorded["kernels"])))


def names(recorded):
    """With what autograd does on `meta`: it adds gradients that meet in new memory."""
    return [kernel["name"].replace("add_.", "add.") for kernel in recorded["kernels"]]


@quick("cnn")
@normal("transformer")
@normal("recurrent")
def it_is_the_trace_of_a_real_run(spillway, model):
    real, done = trace(spillway, model, "cpu")
    check(real is not None, done.stderr)
    dry, done = trace(spillway, model, "meta", options=["--dry-run"])
    check(dry is not None, done.stderr)
    check("resized" not in done.stderr, done.stderr)
    check("estimated" not in real and dry["estimated"] == "roofline, a100", dry["source"])
    different = [(at, a, b) for at, (a, b) in enumerate(zip(names(real), names(dry))) if a != b]
    check(names(real) == names(dry), len(names(real)), len(names(dry)), *different[:5])
    lived = [collections.Counter(lives(recorded)) for recorded in (real, dry)]
    only = [lived[0] - lived[1], lived[1] - lived[0]]
    check(model != "cnn" or not only[0] and not only[1], *only)
    check(all(tensor["kind"] != "workspace" for tensor in dry["tensors"]), dry["tensors"])
    area = [sum(size * (last + 1 - first) for first, last, size in lives(recorded)) for recorded in (real, dry)]
    check(abs(area[0] - area[1]) <= area[0] / 50, area)
    check(abs(peak(real) - peak(dry)) <= peak(real) / 100, peak(real), peak(dry))
    uses = [bool(kernel["reads"] or kernel["writes"]) for kernel in dry["kernels"]]
    check(all(kernel["gap_ns"] == 0 and (kernel["duration_ns"] >= 2000 if any_bytes else kernel["duration_ns"] == 1)
              for kernel, any_bytes in zip(dry["kernels"], uses)), dry["kernels"][:3])
    check((model == "transformer") != all(uses), uses.count(False))  # AdamW counts its steps on the CPU.


@normal()
def all_that_is_made_of_it_says_so(spillway):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.trace")
        subprocess.run([spillway, "trace", "--dry-run", "--machine", "v100-32", "--scale-ideal", "1.5", "-o", path, "--",
                        *script("on_meta.py", "cnn", "meta")], check=True, timeout=300)
        on = [path, "--machine", "v100-32", "--set", "device.memory=40MiB", "--set", "ssd.capacity=1TB"]
        for command in (["show", path], ["compare", *on], ["simulate", *on, "--policy", "uvm"], ["plan", *on, "--policy", "g10"],
                        ["plan", *on, "--policy", "g10", "--listing"], ["compare", "--job", path, *on[1:], "--policies", "uvm"]):
            done = subprocess.run([spillway, *command], capture_output=True, text=True)
            check("estimates" in done.stdout and "roofline, v100-32, scaled to 1.5 s" in done.stdout, command, done.stdout, done.stderr)
            if "--listing" not in command:
                done = subprocess.run([spillway, *command, "--json"], capture_output=True, text=True)
                check('"estimated_times": true' in done.stdout, command, done.stdout, done.stderr)
        total = sum(kernel["duration_ns"] for kernel in read_json(path)["kernels"])
        check(total == 1_500_000_000, total)
        learned = subprocess.run([spillway, "fit-latencies", path, "-o", os.path.join(folder, "x.latencies")], capture_output=True, text=True)
        check(learned.returncode == 1 and "estimates" in learned.stderr, learned.stderr)


@normal()
def a_papers_traces_are_made_by_one_command(spillway):
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, os.path.join(EXAMPLES, "models", "traces.py"), "deepum", "-o", folder, "--spillway", spillway, "--only", "DLRM-(96|512)K"]
        for there, made in (("0 of 2", 2), ("2 of 2", 0)):
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
            check(done.returncode == 0 and done.stderr.startswith(f"{there} traces are there"), done.stderr)
            check(len(done.stderr.splitlines()) == 1 + made, done.stderr)
        for which, model, estimated in ((["--table", "3"], "DLRM-512K", []), (["--figure", "9b"], "DLRM-96K", ["DLRM-96K"])):  # A peak is no time.
            done = subprocess.run([spillway, "reproduce", "deepum", *which, "--traces", folder, "--no-cache", "--json"], capture_output=True, text=True)
            check(done.returncode == 0, done.stderr)
            report = json.loads(done.stdout)
            check([one["model"] for one in report["traces"]] == [model], report["traces"])
            check(report["figures"][0]["estimated_models"] == estimated, report["figures"])
        done = subprocess.run([*command[:-1], "Nothing"], capture_output=True, text=True)
        check(done.returncode == 1 and "no such trace" in done.stderr, done.stderr)


@normal()
def a_forked_child_may_use_tensors(spillway):
    recorded, done = trace(spillway, "cnn-in-child", "meta", options=["--dry-run"])
    check(recorded is not None and done.returncode == 0 and "segmentation fault" not in done.stderr, done.stderr)


@normal()
def resized_tensors_are_missed_aloud(spillway):
    recorded, done = trace(spillway, "cnn-resized", "meta", options=["--dry-run"])
    check(recorded is not None and done.stderr.count("tensors that were resized") == 1, done.stderr)


@normal()
def a_machine_is_named_with_its_changes(spillway):
    changes = ["device.gflops=312000", "device.tensor_gflops=312000", "device.bandwidth=1.555TB/s"]
    with tempfile.TemporaryDirectory() as folder:
        machine = os.path.join(folder, "a" * 100, "b" * 100, "mine.toml")
        os.makedirs(os.path.dirname(machine))
        shown = subprocess.run([spillway, "machines", "a100", "--toml"], check=True, capture_output=True, text=True).stdout
        with open(machine, "w", encoding="utf-8") as file:
            file.write("\n".join(line for line in shown.splitlines() if not line.startswith("name")))
        sets = [word for change in changes for word in ("--set", change)]
        recorded, done = trace(spillway, "cnn", "meta", options=["--dry-run", "--machine", machine, *sets])
        check(recorded is not None, done.stderr)
        check(recorded["estimated"] == "roofline, mine with " + " with ".join(changes), recorded["estimated"])
        recorded, done = trace(spillway, "cnn", "meta", options=["--dry-run", *sets * 5])
        check(recorded["estimated"].endswith("=312000, and more"), recorded["estimated"])


REAL = """
import os, subprocess, sys, torch
weight = torch.ones(4)
torch.ones(4, device="meta")
print("mapped", sum("spillway-session" in line for line in open("/proc/self/maps")))
meta = "import torch; torch.empty_strided((4,), (1,), device='meta'); print('only meta')"
subprocess.run([sys.executable, "-c", meta], env={**os.environ, "SPILLWAY_SESSION": "/nowhere"}, check=True)
"""


@normal()
def in_a_real_run_tensors_on_meta_are_nobodys(spillway):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([spillway, "trace", "-o", os.path.join(folder, "x.trace"), "--", sys.executable, "-c", REAL],
                              capture_output=True, text=True, timeout=300)
        check("mapped 1\n" in done.stdout and "only meta" in done.stdout, done.stdout, done.stderr)


@normal()
def what_cannot_be_dry_is_explained(spillway):
    recorded, done = trace(spillway, "cnn-with-values", "meta", options=["--dry-run"])
    check(recorded is None and done.returncode == 1 and "is_meta" in done.stderr, done.stderr)
    recorded, done = trace(spillway, "cnn", "cpu", options=["--dry-run"])
    check(recorded is None and done.returncode == 1 and "device `meta`" in done.stderr, done.stderr)
    recorded, done = trace(spillway, "cnn", "meta", options=["--dry-run", "--set", "device.gflops=0"])
    check(recorded is None and done.returncode == 2 and "device.gflops=19500" in done.stderr, done.stderr)


main()
