#!/usr/bin/env python3
"""All that PyTorch can compute, in little memory: the sample inputs of its own operator database give the same results."""

import importlib.util
import os
import subprocess
import time

from cases import check, long, main, normal, run, script, skip

PARTS = 10
os.environ["PYTHONHASHSEED"] = "0"  # The database goes through sets, so that samples have another order in each process.


def results_of(printed):
    return dict(line.split(" ", 1) for line in printed.splitlines())


def compare(spillway, part):
    if importlib.util.find_spec("expecttest") is None:
        skip("the database needs the Python package expecttest")
    command = script("operator_database.py", str(part), str(PARTS))
    bare = [subprocess.run(command, capture_output=True, text=True, check=True, timeout=600) for _ in range(2)]
    first, second = (results_of(one.stdout) for one in bare)
    done, report = run(spillway, command, memory="64MiB")
    check(done.returncode == 0, done.stderr)
    limited = results_of(done.stdout)
    check(limited.keys() == first.keys() and len(first) > 40, len(first), len(limited))
    moved = report["moved_bytes"]["ssd_to_device"] >> 20
    print(f"part {part} of {PARTS}: {len(first)} operators; {moved} MiB moved to the device", flush=True)
    check(moved > 1000, "hardly anything was pushed out")
    errors, results = (sum(int(one.split()[place]) for one in first.values()) for place in (1, 2))
    check(errors < 0.02 * results, f"{errors} of {results} are errors, so nothing is compared")
    fixed = [name for name in first if first[name] == second[name]]
    check(len(fixed) > 0.9 * len(first), "hardly any operator has fixed results", set(first) - set(fixed))
    wrong = [name for name in fixed if limited[name] != first[name]]
    check(not wrong, "other results than without a limit:", *wrong)


@normal(cpus=2)
def a_tenth_of_the_operators(spillway):
    compare(spillway, int(time.time() // 86400) % PARTS)  # Another one each day.


@long()
def all_operators(spillway):
    for part in range(PARTS):
        compare(spillway, part)


main()
