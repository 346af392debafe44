"""One run of a script after the other, as long as there is time."""

import json
import os
import re
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from models import RANDOM, STRICT, STRICT_STEPS, WHOLE
from verdicts import saves

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "..", "examples")
PEER = os.path.join(HERE, "as_peer.py")
PROGRAMS = os.path.join(HERE, "random_programs.py")
MUCH_LONGER = 4  # times what a run should take: it is ended then


class Runs:
    """What each run has given: {model: {run: a dictionary, which has `seconds` and `lines`, or `error`}}."""

    def __init__(self, options, models, results):
        self.options, self.models, self.results = options, models, results
        self.deadline = time.monotonic() + options.within
        # What PyTorch asks for before cuBLAS gives the same bits each time.
        self.environment = {**os.environ, "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
        shown = subprocess.run([options.spillway, "run", "--help"], capture_output=True, text=True)
        if shown.returncode != 0:
            sys.exit(f"{options.spillway} does not start: {shown.stderr}")
        self.has_strict = "--strict" in shown.stdout

    def left(self):
        return self.deadline - time.monotonic()

    def of(self, model, run):
        return self.results.get(model, {}).get(run) or {}

    def ask(self, model, run):
        """Does it, or says in `not_reached` why not."""
        if "lines" in self.of(model, run):
            return  # an earlier call has
        results = self.results.setdefault(model, {})
        usual = self.usual_seconds(model)
        if self.left() < usual:
            results[run] = {"not_reached": "no time was left"}
            return
        results[run] = self.programs(run, usual) if model == RANDOM else self.train(model, run, usual)

    def usual_seconds(self, model):
        """Of those that were, the longest; a guess before."""
        seconds = [ran["wall_seconds"] for ran in self.results.get(model, {}).values() if "wall_seconds" in ran]
        return max(seconds) if seconds else self.models[model].seconds if model in self.models else 20

    def train(self, name, run, usual):
        model = self.models[name]
        steps = STRICT_STEPS if run == STRICT else model.steps
        script = [os.path.join(EXAMPLES, model.script), *model.arguments.split(), "--steps", str(steps), "--device", self.options.device]
        if run in ("plain", "save_on_cpu", "fsdp2"):
            return self.run(usual, *self.python(PEER, run, *script))
        memory = self.memory_of(name, run)
        if memory is None:
            return {"not_reached": "how much memory that is, no run has told"}
        if run.startswith("as ") and not saves(self.results[name], run.removeprefix("as ")):
            return {"not_reached": "with as much memory the model fits"}
        if run == STRICT and not self.has_strict:
            return {"not_reached": "this Spillway has no --strict"}
        return self.limited(usual, memory, ["--strict"] if run == STRICT else [], *self.python(*script))

    def memory_of(self, name, run):
        """As `--device-memory` wants it; "": no limit; None: not known."""
        if run == WHOLE:
            return ""
        if run == self.models[name].memory:
            return run
        if run.startswith("as "):
            peak, part = self.of(name, run.removeprefix("as ")).get("peak"), 100
        else:
            peak, part = self.of(name, WHOLE).get("report", {}).get("peak_device_bytes"), int(run.split()[0])
        return peak and f"{peak * part // 100 >> 20}MiB"

    def programs(self, run, usual):
        written = os.path.join(self.options.folder, "random_programs.txt")
        command = self.python(PROGRAMS, "--device", self.options.device, "--programs", str(self.options.programs), "--memory", "64")
        if run == "plain":
            return self.run(usual, *command, "--write", written)
        if not os.path.exists(written):
            return {"not_reached": "what they compute without a limit is not known"}
        return self.limited(usual, "64MiB", ["--host-memory", "64MiB"], *command, "--compare", written)

    def python(self, *command):
        return [sys.executable, *shlex.split(self.options.through), *command]

    def limited(self, usual, memory, more, *command):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.json")
            limit = ["--device-memory", memory] if memory else []
            device = "cuda" if self.options.device == "strict" else self.options.device
            ran = self.run(usual, self.options.spillway, "run", "--quiet", "--device", device, *limit, *more, "--json", path, "--", *command)
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    ran["report"] = json.load(file)
            return ran

    def run(self, usual, *command):
        start = time.monotonic()
        limit = min(self.left(), MUCH_LONGER * usual)
        # A group of its own: what it started ends with it.
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment, start_new_session=True)
        try:
            printed, said = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            return {"not_reached": f"it had not ended after {limit:.0f} s"}
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        ran = {"command": shlex.join(command), "wall_seconds": time.monotonic() - start}
        if process.returncode != 0:
            ran["out_of_memory"] = "OutOfMemoryError" in said
            ran["error"] = "\n".join([*printed.splitlines()[-3:], said[-2000:]]).strip() or f"status {process.returncode}"
            return ran
        ran["lines"] = [line.partition(" seconds")[0] for line in printed.splitlines() if not line.startswith("peak ")]
        ran["steps"] = [float(found) for found in re.findall(r" seconds ([0-9.]+)", printed)]
        if ran["steps"]:
            ran["seconds"] = statistics.median(ran["steps"][len(ran["steps"]) // 2:])  # A plan is followed by then.
        for peak in re.findall(r"^peak (\d+)$", printed, re.M):
            ran["peak"] = int(peak)
        return ran
