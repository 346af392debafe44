#!/usr/bin/env python3
"""Runs every command line of README.md and docs/guide.md: readme_test.py BUILD PYTHON

A block that begins with ```sh is run, one line after the other. Each document has a scratch folder with the project's folders in it,
and the built program and the PyTorch of the build are first in PATH. Blocks of any other kind (```console, ```text) are for
reading. A line ending in `# exits N` must exit so. Lines that begin as in SETUP are not run, since this very test is part of
what they do: a script must exist, and a preset that cmake is given must be one of CMakePresets.json.
"""
import json
import os
import re
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SETUP = ("./demo", "./test", "sudo ", "cmake ", "git ", "cd ", "apt-get ")
DOCUMENTS = ("README.md", "docs/guide.md")
LINKED = ("examples", "machines", "docs")


def blocks(text):
    """(line number, lines) of each ```sh block, with lines that end in a backslash joined."""
    found = []
    for block in re.finditer(r"^```sh\n(.*?)^```$", text, re.M | re.S):
        joined = block[1].replace("\\\n", " ")
        first = text[: block.start(1)].count("\n") + 1
        found.append((first, [l.strip() for l in joined.splitlines() if l.strip() and not l.strip().startswith("#")]))
    return found


def prepare(scratch, build, python):
    """The folder that the lines run in, and a PATH in which spillway and python3 are ours."""
    for name in LINKED:
        if (ROOT / name).exists():
            (scratch / name).symlink_to(ROOT / name)
    (scratch / "build").symlink_to(build)
    programs = scratch / ".programs"
    programs.mkdir()
    (programs / "spillway").symlink_to(build / "spillway")
    launcher = programs / "python3"
    launcher.write_text(f'#!/bin/sh\nexec "{python}" "$@"\n')  # A link would lose the virtual environment.
    launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR)
    return {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(scratch / ".cache")}


def run_line(line, scratch, environment):
    """None if the line did what it should, else what went wrong."""
    if line.startswith(SETUP):
        program = line.split()[0]
        if program.startswith("./") and not os.access(ROOT / program, os.X_OK):
            return f"{program} is no program"
        presets = json.loads((ROOT / "CMakePresets.json").read_text())
        known = {preset["name"] for kind in ("configurePresets", "buildPresets") for preset in presets[kind]}
        if (named := re.search(r"--preset (\S+)", line)) and named[1] not in known:
            return f"there is no preset {named[1]}"
        return None
    expected = re.search(r"#\s*exits (\d+)\s*$", line)
    status = int(expected[1]) if expected else 0
    begin = time.monotonic()
    done = subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=scratch, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    print(f"{time.monotonic() - begin:7.2f} s  {line}", flush=True)
    if done.returncode != status:
        return f"status {done.returncode}, not {status}:\n{done.stdout[-3000:]}"
    return None


def run_document(name, build, python):
    """How many of its lines did not do what they should."""
    failed = 0
    found = blocks((ROOT / name).read_text())
    if not any(lines for _, lines in found):
        sys.exit(f"{name} has no ```sh block to run")
    with tempfile.TemporaryDirectory(prefix="spillway-readme-", dir="/var/tmp") as folder:
        environment = prepare(Path(folder), Path(build), python)
        for first, lines in found:
            for line in lines:
                if problem := run_line(line, folder, environment):
                    print(f"{name}, block at line {first}: {line}\n{problem}")
                    failed += 1
    return failed


def main():
    build, python = sys.argv[1], sys.argv[2]
    if not python:
        print("skipped: built without the hook, which most lines need (-DSPILLWAY_PYTHON)")
        sys.exit(77)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:16])  # More CPUs may need more memory than the documents give.
    tried = subprocess.run([Path(build) / "spillway", "run", "--device-memory", "512MiB", "true"], capture_output=True, text=True)
    if os.getuid() != 0 and "page faults cannot be served" in tried.stderr:
        print("skipped:", tried.stderr)
        sys.exit(77)
    failed = sum(run_document(name, build, python) for name in DOCUMENTS)
    sys.exit(failed > 0)


main()
