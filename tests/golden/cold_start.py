#!/usr/bin/env python3
"""From traces to TENSILE's first plan: `$SPILLWAY fit-latencies`, and what plans with its file."""
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SPILLWAY = os.environ["SPILLWAY"]
TRACE = str(HERE / "six_layers.trace")
SMALL = ["--machine", "a100", "--set", "device.memory=3GiB"]


def run(*arguments):
    return subprocess.run([SPILLWAY, *arguments], check=True, capture_output=True, text=True, timeout=120).stdout


def simulated(policy):
    return json.loads(run("simulate", TRACE, "--policy", policy, *SMALL, "--json"))


def main():
    kernels = json.loads(Path(TRACE).read_text())["kernels"]
    with tempfile.TemporaryDirectory() as name:
        file, wrong, plan = (str(Path(name) / one) for one in ("six.latencies", "wrong.latencies", "cold.plan"))
        report = json.loads(run("fit-latencies", TRACE, "-o", file, "--json"))
        classes = {one["class"]: one for one in report["classes"]}
        assert classes["*"]["kernels"] == report["all"]["kernels"] == len(kernels), report
        assert sum(one["kernels"] for name, one in classes.items() if name != "*") == len(kernels), report
        assert report["latencies_file"] == file and report["traces"][0]["kernels"] == len(kernels), report
        text = Path(file).read_text()
        table = run("fit-latencies", TRACE, "-o", file)
        assert Path(file).read_text() == text, "the same traces give the same file"
        assert all(re.search(rf"^{re.escape(one)} +{classes[one]['kernels']} ", table, re.M) for one in classes), table

        exact, cold = simulated("tensile"), simulated(f"tensile:cold-start={file}")
        assert exact["parameters"]["cold-start"] is None and cold["parameters"]["cold-start"] == file, cold["parameters"]
        assert cold["policy"] == f"tensile:cold-start={file}", cold["policy"]
        assert cold["iteration_seconds"] == exact["iteration_seconds"], (cold, exact)
        # A thousand times as long: nothing of the plan fits the kernels that run, until it is made again.
        Path(wrong).write_text(re.sub(r'"output": \[([^,]+),', lambda found: f'"output": [{float(found[1]) + 7},', text))
        late = simulated(f"tensile:cold-start={wrong}")
        assert late["cold_iteration_seconds"] > exact["cold_iteration_seconds"], (late, exact)
        assert late["iteration_seconds"] == exact["iteration_seconds"], (late, exact)

        run("plan", TRACE, "--policy", f"tensile:cold-start={wrong}", *SMALL, "-o", plan)
        kept = json.loads(run("simulate", TRACE, "--plan", plan, *SMALL, "--json"))
        assert kept["iteration_seconds"] > exact["iteration_seconds"], (kept, exact)
        compared = json.loads(run("compare", TRACE, "--policies", f"lms,tensile:swap-limit=1,cold-start={wrong},uvm", *SMALL, "--json"))
        assert [one["parameters"].get("cold-start") for one in compared["results"]] == [None, wrong, None], compared
        jobs = ["--job", f"{TRACE}:iterations=3", "--job", f"{TRACE}:iterations=3,arrival=1s"]
        of_jobs = [json.loads(run("simulate", *jobs, "--policy", policy, *SMALL, "--json"))["jobs"]
                   for policy in ("tensile", f"tensile:cold-start={wrong}")]
        assert of_jobs[1][0]["first_iteration_seconds"] > of_jobs[0][0]["first_iteration_seconds"], of_jobs
        parameters = json.loads(run("policies", "tensile", "--json"))["policies"][0]["parameters"]
        assert ("cold-start", "file", None) in [(one["name"], one["kind"], one["default"]) for one in parameters], parameters
    return 0


sys.exit(main())
