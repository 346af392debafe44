"""replayed_runs.py SPILLWAY: what a real run under pressure decided, learning and with a plan, is decided again by
`spillway replay` from its journal, command by command; that of a killed run, up to there."""

import json
import os
import signal
import subprocess
import sys
import tempfile

from cases import EXAMPLES, check, long, main, normal, train

RESNET = ["train_resnet.py", "--batch", "4", "--size", "96", "--steps"]


def replayed(spillway, folder, status=0):
    done = subprocess.run([spillway, "replay", folder, "--json"], capture_output=True, text=True, timeout=300)
    check(done.returncode == status, done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout)


@normal(cpus=2)
def run_that_learns_and_plans(spillway):
    with tempfile.TemporaryDirectory() as folder:
        _, report = train(spillway, "256MiB", "auto", EXAMPLES, *RESNET, "8", options=("--record", folder))
        check(report["journal_file"] == os.path.join(folder, "run.journal"), report)
        check(report["plan"] and report["faults"] > 0, "there was no pressure", report)
        replay = replayed(spillway, folder)
        check(replay["equal"] and replay["end"] == "script_ended" and replay["difference"] is None, replay)
        check(replay["plans"] >= 1 and replay["looks_ahead"] == "deepum" and replay["commands"] > 1000, replay)
        check(replay["iterations"] == 8, replay)
        # What the decisions moved is what the machine did, but for what still moved when the script ended.
        moved, decided = report["moved_bytes"]["ssd_to_device"], replay["moved_bytes"]["ssd_to_device"]
        check(0.99 * moved < decided <= moved, moved, replay)
        print("ok", replay["events"], "events,", replay["commands"], "commands,", replay["plans"], "plans,",
              os.path.getsize(report["journal_file"]), "bytes", flush=True)
        table = subprocess.run([spillway, "replay", report["journal_file"]], capture_output=True, text=True, timeout=300)
        check("all equal" in table.stdout and table.stderr == "", table)


@long()
def run_that_fits(spillway):
    """Nothing in it wakes those who decide; all the same its journal has all of it."""
    with tempfile.TemporaryDirectory() as folder:
        _, report = train(spillway, "3GiB", "auto", EXAMPLES, *RESNET, "6", options=("--record", folder))
        check(sum(report["moved_bytes"].values()) == 0, report)
        replay = replayed(spillway, folder)
        check(replay["equal"] and replay["end"] == "script_ended" and replay["iterations"] == 6, replay)
        print("ok a run that fits,", replay["events"], "events", flush=True)


@long()
def run_that_is_killed(spillway):
    with tempfile.TemporaryDirectory() as folder:
        line = [sys.executable, os.path.join(EXAMPLES, RESNET[0]), *RESNET[1:], "1000"]
        command = [spillway, "run", "--record", folder, "--device-memory", "256MiB", "--quiet", "--", *line]
        script = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for line in script.stdout:
            if line.startswith("step 4 "):
                break
        script.send_signal(signal.SIGKILL)
        script.wait()
        script.stdout.read()  # Until the guardian has ended the script, a moment later.
        replay = replayed(spillway, folder)
        check(replay["equal"] and replay["end"] == "open" and replay["iterations"] >= 4, replay)
        print("ok a killed run, up to event", replay["events"], flush=True)


main()
