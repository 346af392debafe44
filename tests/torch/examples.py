"""examples.py SPILLWAY: each example, small and with half the memory that it needs, prints the losses and the hash of the weights that it
prints without Spillway; one that is stopped and resumed from its checkpoint prints the rest of them."""

import json
import os
import subprocess
import sys
import tempfile

from limited_runs import MIB, check, run_all

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
SMALL = {
    "train_gpt.py": ["--layers", "2", "--width", "512", "--batch", "2", "--length", "64", "--words", "8000"],
    "train_bert.py": ["--layers", "2", "--batch", "2", "--length", "32"],
    "train_vit.py": ["--layers", "3", "--batch", "2"],
    "finetune_lora.py": ["--layers", "2", "--batch", "2", "--length", "64"],
    "train_dataloader.py": ["--batch", "8", "--size", "64"],
}


def results(printed):
    return [line.partition(" seconds")[0] for line in printed.splitlines()]


def command(name, *options):
    return [sys.executable, os.path.join(EXAMPLES, name), *SMALL[name], *options]


def alone(line):
    return results(subprocess.run(line, capture_output=True, text=True, check=True, timeout=300).stdout)


def limited(spillway, memory, line):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.json")
        done = subprocess.run([spillway, "run", "--device-memory", memory, "--json", path, "--", *line],
                              capture_output=True, text=True, timeout=300)
        check(done.returncode == 0, done.stderr)
        with open(path, encoding="utf-8") as file:
            return results(done.stdout), json.load(file)


def half_of_what(spillway, line):
    _, report = limited(spillway, "4GiB", line)
    return f"{max(report['peak_device_bytes'] // 2, 32 * MIB * len(os.sched_getaffinity(0))) >> 20}MiB"


def each_is_the_same_with_half_the_memory(spillway):
    for name in SMALL:
        line = command(name, "--steps", "6")
        memory = half_of_what(spillway, command(name, "--steps", "2"))
        printed, report = limited(spillway, memory, line)
        check(printed == alone(line) and len(printed) == 7, name, printed)
        check(sum(report["moved_bytes"].values()) > 0, name, memory, report)
        print("ok", name, memory, [iteration["phase"] for iteration in report["iterations"]], flush=True)


def one_that_is_resumed_is_the_same(spillway):
    memory = half_of_what(spillway, command("train_dataloader.py", "--steps", "2"))
    with tempfile.TemporaryDirectory() as folder:
        resumed = ["--checkpoint", os.path.join(folder, "checkpoint")]
        first, _ = limited(spillway, memory, command("train_dataloader.py", "--steps", "4", *resumed))
        rest, _ = limited(spillway, memory, command("train_dataloader.py", "--steps", "8", *resumed))
    check(first[:-1] + rest == alone(command("train_dataloader.py", "--steps", "8")), first, rest)


if __name__ == "__main__":
    run_all(each_is_the_same_with_half_the_memory, one_that_is_resumed_is_the_same)
