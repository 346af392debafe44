#!/usr/bin/env python3
"""Compares what a command prints with a file that was looked at by a person: golden.py EXPECTED ARGUMENT ...

Runs `$SPILLWAY ARGUMENT ...` in this folder. After a change that was meant: SPILLWAY_GOLDEN_UPDATE=1 ctest -L golden, then read
the diff before it is committed. The program's version and the seconds that a run took are not compared.
"""
import difflib
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main():
    expected_file, *arguments = sys.argv[1:]
    expected_file = HERE / expected_file
    done = subprocess.run([os.environ["SPILLWAY"], *arguments], cwd=HERE, capture_output=True, text=True, timeout=120)
    if done.returncode:
        print(f"status {done.returncode}: {done.stderr}")
        return 1
    got = re.sub(r'"spillway": "[^"]*"', '"spillway": "VERSION"', done.stdout)
    got = re.sub(r'"(wall|planning)_seconds": [-+.eE0-9]+', r'"\1_seconds": TIME', got)
    got = re.sub(r"(planned|simulated) in \d+\.\d+ s", r"\1 in TIME s", got)
    if os.environ.get("SPILLWAY_GOLDEN_UPDATE"):
        expected_file.write_text(got)
        return 0
    expected = expected_file.read_text()
    if got == expected:
        return 0
    names = {"fromfile": expected_file.name, "tofile": "spillway " + " ".join(arguments)}
    sys.stdout.writelines(difflib.unified_diff(expected.splitlines(True), got.splitlines(True), **names))
    print("to mend, if the change was meant: SPILLWAY_GOLDEN_UPDATE=1 ctest -L golden, and read the diff")
    return 1


sys.exit(main())
