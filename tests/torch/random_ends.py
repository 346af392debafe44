"""random_ends.py SPILLWAY: a run that ends at a random moment, whoever ends it and how, leaves no process."""

import os
import random
import re
import signal
import subprocess
import tempfile
import time
import uuid

from cases import check, least_memory, long, main, script

ENOUGH = 60  # seconds


def processes_with(mark):
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{number}/environ", "rb") as file:
                environment = file.read()
            with open(f"/proc/{number}/stat", encoding="utf-8", errors="replace") as file:
                is_dead = file.read().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            continue  # It has ended.
        if mark.encode() in environment and not is_dead:
            found.append(int(number))
    return found


def script_of(processes):
    """The process that trains, by its command line."""
    for number in processes:
        with open(f"/proc/{number}/cmdline", "rb") as file:
            if re.match(rb"[^\0]*python[^\0]*\0[^\0]*sweeps_for_ever", file.read()):
                return number
    raise AssertionError(f"no script among {processes}")


@long("supervisor", "script")
def whoever_ends_it_nothing_is_left(spillway, *everybody):
    for who in everybody:
        for name in ("SIGTERM", "SIGINT", "SIGKILL", "SIGABRT"):
            seed = random.randrange(1 << 32)
            chance = random.Random(seed)
            mark = str(uuid.uuid4())
            with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
                line = [spillway, "run", "--device-memory", least_memory(), "--ssd", folder, "--quiet",
                        "--", *script("sweeps_for_ever.py")]
                process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                           env=os.environ | {"SPILLWAY_TEST": mark})
                for _ in range(1 + chance.randrange(3)):  # One at least: what Python does with signals before is its own.
                    check(process.stdout.readline() == b"swept\n", who, name, seed)
                # Between two lines, at whichever moves are under way then.
                until = time.monotonic() + chance.random()
                while time.monotonic() < until:
                    pass
                target = process.pid if who == "supervisor" else script_of(processes_with(mark))
                os.kill(target, getattr(signal, name))
                process.stdout.close()
                status = process.wait(ENOUGH)
                given_up = time.monotonic() + ENOUGH
                while processes_with(mark):
                    check(time.monotonic() < given_up, "a process is left", who, name, seed)
                check(not os.listdir(folder), "files are left", who, name, seed)
            # A signal to the supervisor is passed on; its own death is nobody's to report.
            expected = getattr(signal, name) if name != "SIGKILL" or who == "script" else None
            check(status != 0 and (expected is None or status in (128 + expected, -expected)), who, name, seed, status)
            print("ok", who, name, status, flush=True)


main()
