"""replayed_runs.py SPILLWAY: what a real run under pressure decided, learning and with a plan, is decided again by
`spillway replay` from its journal, command by command; that of a killed run, up to there."""

import json
import os
import signal
import subprocess
import sys
import tempfile

from cases import EXAMPLES, SCRIPTS, check, least_memory, long, main, normal, run, train

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


@normal()
def run_that_accumulates_gradients(spillway):
    """Each backward pass seems to end an iteration, until an optimizer makes its first step."""
    with tempfile.TemporaryDirectory() as folder:
        _, report = train(spillway, least_memory(), "auto", SCRIPTS, "accumulation.py", options=("--record", folder))
        replay = replayed(spillway, folder)
        check(replay["iterations"] == len(report["iterations"]) == 6, replay, report)
        drawn = os.path.join(folder, "drawn.json")
        show = [spillway, "show", report["journal_file"], "--iterations", "1-6", "--perfetto", drawn]
        subprocess.run(show, check=True, stdout=subprocess.DEVNULL, timeout=300)
        with open(drawn) as file:
            events = json.load(file)["traceEvents"]
        begins = [event["ts"] for event in events if event["name"].startswith("iteration ")]
        passes = [event["ts"] for event in events if event["name"].startswith("aten::nll_loss_backward")]
        check(len(begins) == 6 and len(passes) == 12, begins, passes)
        in_each = [sum(begin <= one for begin in begins) for one in passes]
        check(in_each == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6], begins, passes)
        print("ok a run that accumulates gradients", flush=True)


@normal()
def run_that_ends_with_a_backward_pass(spillway):
    """Nothing but the script's end tells that its last iteration has ended. Then the process is gone at once."""
    lines = ["import ctypes, torch", "libc = ctypes.CDLL(None)", "libc.on_exit(libc._exit, None)",
             "net, x = torch.nn.Linear(64, 64), torch.randn(8, 64)", "for _ in range(5): net(x).sum().backward()"]
    with tempfile.TemporaryDirectory() as folder:
        done, report = run(spillway, [sys.executable, "-c", "\n".join(lines)], "--record", folder)
        check(done.returncode == 0, done.stderr)
        replay = replayed(spillway, folder)
        check(replay["iterations"] == len(report["iterations"]) == 5, replay, report)


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
