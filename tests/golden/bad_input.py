#!/usr/bin/env python3
"""What bad input gets on the command line: one error that names the file and what to do, a status that says so, and no file.

Uses `$SPILLWAY`, and the trace beside this file, spoilt.
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SPILLWAY = os.environ["SPILLWAY"]
TRACE = json.loads((HERE / "six_layers.trace").read_text())
A100_TOML = subprocess.run([SPILLWAY, "machines", "a100", "--toml"], check=True, capture_output=True, text=True).stdout
A100 = ["--machine", "a100", "--set", "device.memory=3GiB"]

# One for each that refuses: what else they refuse, the tests beside them say.
TRACES = {
    "truncated": json.dumps(TRACE)[:1000],
    "cut zstd": b"\x28\xb5\x2f\xfd\x00",
    "no kernels": json.dumps(TRACE | {"kernels": []}),
}
MACHINES = {
    "no bandwidth": ("link.to_device = \"0GB/s\"", "link"), "no channels": (A100_TOML + "\n[flash]\nchannels = 0\n", "flash.channels"),
    "flash too small": (A100_TOML + "\n[flash]\nover_provisioning = \"0%\"\n", "ssd.capacity"),
    "many dots": ("a" + ".a" * 100_000 + " = 1", "line 1"),
}


def plans(plan):
    return {
        "not JSON": json.dumps(plan)[:-5],
        "unknown policy": json.dumps(plan | {"policy": "magic"}),
        "policy without plans": json.dumps(plan | {"policy": "uvm"}),
        "unknown tensor": json.dumps(plan | {"evictions": [{"tensor": 999, "after_kernel": 0, "to": "ssd"}]}),
    }


def fails(what, file, *arguments, status=(1,)):
    done = subprocess.run([SPILLWAY, *arguments], capture_output=True, text=True, timeout=60)
    errors = done.stderr.strip().splitlines()
    good = done.returncode in status and len(errors) == 1 and errors[0].startswith("spillway: error: ") and str(file) in errors[0]
    if good and not done.stdout:
        return True
    print(f"{what}: status {done.returncode}, stdout {done.stdout[:200]!r}, stderr {done.stderr[:500]!r}")
    return False


def main():
    good = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        output = folder / "output.plan"

        def write(file, content):
            path = folder / file
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
            return str(path)

        for what, content in TRACES.items():
            file = write("bad.trace", content)
            good &= fails(what, file, "show", file)
            good &= fails(what, file, "plan", file, "--policy", "g10", *A100, "-o", str(output))
        trace = str(HERE / "six_layers.trace")
        subprocess.run([SPILLWAY, "plan", trace, "--policy", "g10", *A100, "-o", str(output)], check=True, stdout=subprocess.DEVNULL)
        for what, content in plans(json.loads(output.read_text())).items():
            file = write("bad.plan", content)
            good &= fails(what, file, "simulate", trace, "--plan", file, *A100)
        output.unlink()
        for what, (content, named) in MACHINES.items():
            file = write("bad.toml", content)
            good &= fails(what, named, "plan", trace, "--policy", "g10", "--machine", file, "-o", str(output))
        for what, content in {"cut": "{\"format\": \"spillway-lat", "a trace": Path(trace).read_text()}.items():
            file = write("bad.latencies", content)
            for command, option in {"simulate": "--policy", "compare": "--policies", "plan": "--policy"}.items():
                good &= fails(what, file, command, trace, option, f"tensile:cold-start={file}", *A100)
        good &= fails("nowhere", "nowhere", "simulate", trace, "--policy", "tensile:cold-start=nowhere", *A100)
        config = (HERE.parents[1] / "fuzz/corpus/g10/three_kernels.config").read_text()
        file = write("bad.config", config[: len(config) // 2])
        good &= fails("cut", file, "import", "g10", file, "-o", str(output))
        for what, arguments in {
            "frobnicate": ["frobnicate"], "magic": ["plan", trace, "--policy", "magic", *A100],
            "--noise": ["simulate", trace, "--policy", "g10", *A100, "--noise", "120%"],
            "z9": ["plan", trace, "--policy", "g10", "--machine", "z9"],
            "--seed": ["simulate", trace, "--policy", "g10", *A100, "--noise", "20%", "--seed", "-1"],
            "'ahead' is given twice": ["simulate", trace, "--policy", "deepum-faults:ahead=8,ahead=9", *A100],
            "pool=1": ["compare", "--job", trace, "--policies", "uvm:pool=1", *A100],
            "-o names the same file": ["export", "chakra", trace, "-o", str(output), "--profile", str(output)],
            "device.colour": ["plan", trace, "--policy", "g10", "--machine", "a100", "--set", "device.colour=7"],
        }.items():
            good &= fails(what, what, *arguments, status=(2,))
        good &= fails("no folder", "none", "import", "g10", str(HERE.parents[1] / "fuzz/corpus/g10/three_kernels.config"),
                      "-o", str(folder / "none/x.trace"))
        model, machine = write("bad.model.trace", Path(trace).read_bytes()), write("bad.machine", A100_TOML)
        inputs = {
            model: ["plan", model, "--policy", "g10", *A100],
            machine: ["plan", trace, "--policy", "g10", "--machine", machine],
            write("bad.fitted", Path(trace).read_bytes()): ["fit-latencies", trace, str(folder / "bad.fitted")],
            write("bad.folder/kernels.config", config): ["import", "g10", str(folder / "bad.folder")],
            write("bad.exported", Path(trace).read_bytes()): ["export", "chakra", str(folder / "bad.exported")],
        }
        for file, arguments in inputs.items():
            before = Path(file).read_bytes()
            good &= fails("the output is an input, which would be lost", file, *arguments, "-o", file, status=(2,))
            good &= Path(file).read_bytes() == before
            good &= fails("the page is an input", file, "show", file, "--html", file, status=(2,))
        # Outputs take the place of their own kind alone.
        script = write("bad.script.py", "print('a script')")
        own_page, own_events = write("bad.own.html", "<!doctype html>\n<title>mine</title>"), write("bad.own.json", '{"displayTimeUnit":"ns","traceEvents":[]}')
        for file, arguments in [
                (machine, ["compare", trace, "--machine", machine, "--policies", "ideal", "--html", machine]),
                (machine, ["simulate", trace, "--machine", machine, "--policy", "ideal", "--timeline", machine]),
                (model, ["show", trace, "--html", model]), (model, ["show", trace, "--perfetto", model]),
                (script, ["trace", "-o", script, "--", sys.executable, script]),
                (script, ["run", f"--json={script}", "--", sys.executable, script]),
                (script, ["import", "g10", str(folder / "bad.folder"), "-o", script]),
                (script, ["plan", trace, "--policy", "g10", *A100, "-o", script]),
                (script, ["fit-latencies", trace, "-o", script]),
                (script, ["export", "chakra", trace, "-o", script]),
                (own_events, ["export", "chakra", trace, "-o", str(output), "--profile", own_events]),
                (own_page, ["show", trace, "--html", own_page]), (own_events, ["show", trace, "--perfetto", own_events])]:
            before = Path(file).read_bytes()
            good &= fails("what is no output of the kind would be lost", "it would be lost", *arguments, status=(2,))
            good &= Path(file).read_bytes() == before
        notes = write("bad.record/run.journal", "notes")
        good &= fails("--record takes the place of notes", "it would be lost", "run", "--record", str(folder / "bad.record"), "--", "true", status=(2,))
        good &= Path(notes).read_text() == "notes"
        with open(folder / "bad.log", "w+") as log:  # What is there stays: /dev/stdout is written on.
            print("head", file=log, flush=True)
            subprocess.run([SPILLWAY, "plan", trace, "--policy", "g10", *A100, "-o", "/dev/stdout"], check=True, stdout=log)
            good &= (folder / "bad.log").read_text().startswith("head\n{")
        for arguments in (["import", "g10", str(folder / "bad.folder"), "-o", "bad.made"], ["plan", trace, "--policy", "g10", *A100, "-o", "bad.made"],
                          ["export", "chakra", trace, "-o", "bad.made", "--profile", "bad.made.profile"], ["show", trace, "--html", "bad.made"],
                          ["show", trace, "--perfetto", "bad.made"], ["simulate", trace, *A100, "--policy", "g10", "--timeline", "bad.made"]):
            (folder / "bad.made").unlink(missing_ok=True)
            for _ in range(2):
                again = subprocess.run([SPILLWAY, *arguments], cwd=folder, check=False, capture_output=True, text=True)
                good &= again.returncode == 0 or bool(print(arguments, again.stderr))
        # What is shown is told by content, so any name does; and what cannot be shown, or not so, says what can.
        report = str(HERE.parent / "pages" / "report.json")
        journal = str(HERE.parents[1] / "fuzz/corpus/journal/random_run.journal")
        page = str(folder / "page.html")
        renamed = write("bad.renamed.plan", (HERE / "six_layers.timeline").read_bytes())
        good &= "longest waits" in subprocess.run([SPILLWAY, "show", renamed], check=True, capture_output=True, text=True).stdout
        other = write("bad.other", '{"format": "spillway-songs"}')
        good &= fails("another format", "spillway-songs", "show", other)
        good &= fails("a report has no moments", "DIR/run.journal", "show", report, "--perfetto", page, status=(2,))
        good &= fails("a report without what is drawn", "no list 'phases'", "show", write("bad.report", Path(report).read_text().replace("phases", "faces")), "--html", page)
        good &= fails("one file for both", "same file", "show", trace, "--html", page, "--perfetto", f"{folder}/./page.html", status=(2,))
        good &= fails("iterations of a trace", "--iterations", "show", trace, "--iterations", "1", "--html", page, status=(2,))
        good &= fails("iterations that are none", "3-8", "show", journal, "--iterations", "8-3", "--html", page, status=(2,))
        good &= fails("iterations that were not", "iterations", "show", journal, "--iterations", "70", "--html", page, status=(2,))
        good &= fails("a folder", "name a file in it: bad", "show", str(folder), status=(2,))
        good &= fails("no name", "-o", "plan", trace, "--policy", "g10", *A100, "-o", "", status=(2,))
        too_small = subprocess.run([SPILLWAY, "plan", trace, "--policy", "g10-gds", "--machine", "a100", "--set", "device.memory=1MiB",
                                    "-o", str(output)], capture_output=True, text=True)
        good &= too_small.returncode == 3 and f"no plan was written to {output}" in too_small.stderr
        left = sorted(path.name for path in folder.iterdir() if not path.name.startswith("bad."))
        if left:
            print("left behind:", left)
        # And what is good works.
        imported = folder / "three.trace.zst"
        source = str(HERE.parents[1] / "fuzz/corpus/g10/three_kernels.config")
        subprocess.run([SPILLWAY, "import", "g10", source, "-o", str(imported)], check=True, stdout=subprocess.DEVNULL)
        shown = subprocess.run([SPILLWAY, "show", str(imported), "--json"], check=True, capture_output=True, text=True)
        good &= json.loads(shown.stdout)["kernels"] == 3
        pair = [str(folder / "et.json"), str(folder / "profile.json.zst")]
        subprocess.run([SPILLWAY, "export", "chakra", trace, "-o", pair[0], "--profile", pair[1]], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([SPILLWAY, "import", "chakra", *pair, "-o", str(imported)], check=True, stdout=subprocess.DEVNULL)
        shown = subprocess.run([SPILLWAY, "show", str(imported), "--json"], check=True, capture_output=True, text=True)
        good &= json.loads(shown.stdout)["kernels"] == 19
        with open("/dev/full", "w") as full:  # Nobody takes the error: the status says it all the same.
            good &= subprocess.run([SPILLWAY, "show", "none"], stderr=full).returncode == 1
        infeasible = subprocess.run([SPILLWAY, "compare", trace, "--machine", "a100", "--set", "device.memory=1MiB",
                                     "--policies", "g10-gds,g10-host"], capture_output=True)
        good &= infeasible.returncode == 3
        return 0 if good and not left else 1


sys.exit(main())
