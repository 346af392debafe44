"""gpu_runs.py SPILLWAY:DRIVER:DEVICE: scripts on a GPU's memory with a part of what they use. There is no GPU: the driver is
libstrict_cuda.so, and PyTorch's device libstrict_device.so (device/). A kernel that touches what is not mapped ends the process."""

import glob
import json
import os
import signal
import subprocess
import sys
import tempfile

from cases import EXAMPLES, HERE, MIB, SCRIPTS, check, long, main, normal, quick, read_json, without_times

ON_A_DEVICE = [os.path.join(SCRIPTS, "on_a_device.py")]
WIDTHS = {"gan": "1024", "lstm": "768", "accumulation": "3072", "checkpointing": "1024", "attention": "768", "streams": "1024"}
LEAST = {"accumulation": 30}  # per cent of its peak; else 25. One launch of that takes 27 alone.
EXAMPLE = {
    "gpt": [os.path.join(EXAMPLES, "train_gpt.py"), "--layers", "4", "--width", "512", "--batch", "2", "--length", "64", "--words", "4000"],
    "resnet": [os.path.join(EXAMPLES, "train_resnet.py"), "--batch", "2", "--size", "64"],
    "vit": [os.path.join(EXAMPLES, "train_vit.py"), "--batch", "4", "--size", "112", "--layers", "4"],
}


class Gpu:
    def __init__(self, libraries):
        self.spillway, driver, device = libraries.split(":")
        self.command = [sys.executable, os.path.join(HERE, "device", "strict_device.py"), device]
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1", "SPILLWAY_CUDA_DRIVER": driver, "STRICT_CUDA_DEVICE_BYTES": str(8 << 30)}

    def plainly(self, *script):
        """The lines that it prints, and the most memory that it uses."""
        done = subprocess.run([*self.command, *script], capture_output=True, text=True, timeout=300, env=self.environment)
        check(done.returncode == 0, done.stderr)
        return lines(done), [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("peak ")]

    def limited(self, memory, *script, options=()):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.json")
            limits = ["--device", "cuda:0", "--device-memory", f"{memory >> 20}MiB", "--json", path, *options]
            done = subprocess.run([self.spillway, "run", *limits, "--", *self.command, *script], capture_output=True, text=True, timeout=600,
                                  env=self.environment)
            return done, read_json(path)


def lines(done):
    return [line for line in without_times(done.stdout) if not line.startswith("peak ")]


def same_with_parts(gpu, script, peak, expected, least=25):
    for part in (100, 50, least):
        done, report = gpu.limited(peak * part // 100, *script, options=["--host-memory", f"{peak * 3 // 4 >> 20}MiB"])
        check(done.returncode == 0 and lines(done) == expected, part, lines(done), expected, done.stderr)
        check(report["device"] == "cuda:0" and report["peak_device_bytes"] <= report["device_budget_bytes"], report)
        check(report["gpu"]["blind_launches"] == 0 and report["error"] is None, report)
        moved = report["moved_bytes"]["device_to_host"] + report["moved_bytes"]["device_to_ssd"]
        check(part == 100 or moved > peak // 4, part, report)
        print("ok", part, "%: moved", moved // MIB, "MiB, plan", (report["plan"] or {}).get("policy"), flush=True)


@quick("gan")
@normal("accumulation", "streams", cpus=2)
@long("lstm", "checkpointing", "attention")
def computes_the_same_with_parts_of_its_memory(libraries, *models):
    gpu = Gpu(libraries)
    for model in models:
        script = [*ON_A_DEVICE, model, "--device", "strict", "--width", WIDTHS[model]]
        expected, peaks = gpu.plainly(*script)
        check(len(expected) == 7, expected)
        same_with_parts(gpu, script, peaks[0], expected, LEAST.get(model, 25))


@normal("gpt", cpus=2)
@long("resnet")
@long("vit")
def trains_an_example(libraries, name):
    gpu = Gpu(libraries)
    script = [*EXAMPLE[name], "--device", "strict", "--steps", "5"]
    expected, _ = gpu.plainly(*script)
    done, report = gpu.limited(4 << 30, *script)
    check(done.returncode == 0 and lines(done) == expected and report["advice"]["kind"] == "fits", done.stdout, done.stderr, report)
    same_with_parts(gpu, script, report["peak_device_bytes"], expected)


@normal("gan", cpus=2)
@long("streams")
def computes_the_same_with_large_blocks(libraries, *models):
    """The plan is of their rows, and what was decided is decided again from the journal."""
    gpu = Gpu(libraries)
    for model in models:
        script = [*ON_A_DEVICE, model, "--device", "strict", "--width", "1536"]
        expected, peaks = gpu.plainly(*script)
        with tempfile.TemporaryDirectory() as folder:
            options = ["--host-memory", f"{peaks[0] // 4 >> 20}MiB", "--block-size", "8MiB", "--record", folder]
            done, report = gpu.limited(peaks[0] // 2, *script, options=options)
            check(done.returncode == 0 and lines(done) == expected, lines(done), expected, done.stderr)
            check(report["gpu"]["block_bytes"] == 8 * MIB and report["error"] is None and report["gpu"]["blind_launches"] == 0, report)
            check(report["peak_device_bytes"] <= report["device_budget_bytes"] and report["peak_device_bytes"] % (8 * MIB) == 0, report)
            check(sum(report["moved_bytes"].values()) > peaks[0] // 4, report)
            if report["plan"]:
                rows = read_json(os.path.join(folder, "blocks.trace"))["tensors"]
                check(rows and all(row["bytes"] % (8 * MIB) == 0 for row in rows), rows)
            replay = subprocess.run([gpu.spillway, "replay", folder, "--json"], capture_output=True, text=True, timeout=300)
            check(replay.returncode == 0 and json.loads(replay.stdout)["equal"], replay)
            print("ok", model, "plan", (report["plan"] or {}).get("policy"), report["moved_bytes"], flush=True)


@normal()
def little_pinned_memory_is_enough(libraries):
    """Moves carry no more than there are buffers for the SSD."""
    gpu = Gpu(libraries)
    script = [*ON_A_DEVICE, "gan", "--device", "strict", "--width", "1536"]
    expected, peaks = gpu.plainly(*script)
    done, report = gpu.limited(peaks[0] * 3 // 4, *script, options=["--pinned-memory", "8MiB"])
    check(done.returncode == 0 and lines(done) == expected, lines(done), expected, done.stderr)
    check(report["gpu"]["pinned_peak_bytes"] == 8 * MIB and report["moved_bytes"]["ssd_to_device"] > 0, report)


@normal("gan")
@long("accumulation", "streams", "lstm", "checkpointing", "attention")
def a_launch_touches_what_it_is_seen_to_touch(libraries, *models):
    gpu = Gpu(libraries)
    for model in models:
        script = [*ON_A_DEVICE, model, "--device", "strict", "--width", WIDTHS[model]]
        expected, peaks = gpu.plainly(*script)
        same_in_a_strict_run(gpu, script, peaks[0], expected)


@long("gpt", "resnet")
def an_example_touches_what_it_is_seen_to_touch(libraries, *names):
    gpu = Gpu(libraries)
    for name in names:
        script = [*EXAMPLE[name], "--device", "strict", "--steps", "5"]
        done, report = gpu.limited(4 << 30, *script)
        same_in_a_strict_run(gpu, script, report["peak_device_bytes"], lines(done))


def same_in_a_strict_run(gpu, script, peak, expected):
    """All else is inaccessible while a launch runs, and ends the process."""
    done, report = gpu.limited(peak // 2, *script, options=["--host-memory", f"{peak * 3 // 4 >> 20}MiB", "--strict"])
    check(done.returncode == 0 and lines(done) == expected, lines(done), expected, done.stderr)
    check(report["gpu"]["strict"] and report["gpu"]["blind_launches"] == 0 and report["error"] is None, report)
    check(report["gpu"]["checked_launches"] > 100 and sum(report["moved_bytes"].values()) > peak // 4, report)


@normal()
def kernels_take_as_long_as_the_device_says(libraries):
    """The host only enqueues them, which takes a small part of the time."""
    gpu = Gpu(libraries)
    with tempfile.TemporaryDirectory() as folder:
        script = [*ON_A_DEVICE, "gan", "--device", "strict", "--width", "2048", "--steps", "8"]
        done, report = gpu.limited(1 << 30, *script, options=["--record", folder])
        check(done.returncode == 0 and report["trace_file"], done.stderr, report["no_trace_because"])
        trace = read_json(report["trace_file"])
    recorded = sum(kernel["duration_ns"] for kernel in trace["kernels"]) / 1e9
    usual = sorted(iteration["seconds"] for iteration in report["iterations"])[len(report["iterations"]) // 2]
    check(usual / 3 < recorded < usual * 3, recorded, usual)


@normal()
def what_does_not_fit_is_said(libraries):
    gpu = Gpu(libraries)
    code = "import torch\nx = torch.ones(8 << 20, device='strict')\ntry:\n    print(float((x + 1).sum().cpu()))\nexcept RuntimeError as e:\n    print('caught', e)\n"
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(code)
        script.flush()
        done, report = gpu.limited(40 << 20, script.name)
        check("caught" in done.stdout, done.stdout, done.stderr)
        check(any("one launch uses 64 MiB of device memory, and the budget is 40 MiB" in notice for notice in report["notices"]), report["notices"])
        # A tensor that no tier has room for is PyTorch's own error, with our numbers.
        done, report = gpu.limited(16 << 20, script.name, options=["--host-memory", "4MiB", "--ssd-capacity", "8MiB"])
        check(done.returncode != 0 and "32 MiB" in done.stderr and "OutOfMemoryError" in done.stderr, done.stdout, done.stderr)
        check(report["refused_bytes"] >= 32 << 20, report["refused_bytes"])


@normal()
def a_kill_leaves_nothing(libraries):
    gpu = Gpu(libraries)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as spilled:
        script = os.path.join(folder, "says_its_pid.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"import os, runpy, sys\nprint('pid', os.getpid(), flush=True)\nsys.argv[0] = {ON_A_DEVICE[0]!r}\n"
                       "runpy.run_path(sys.argv[0], run_name='__main__')\n")
        command = [gpu.spillway, "run", "--device", "cuda", "--device-memory", "40MiB", "--host-memory", "16MiB", "--ssd", spilled, "--"]
        script = [script, "gan", "--device", "strict", "--width", "1024", "--steps", "1000"]
        run = subprocess.Popen([*command, *gpu.command, *script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=gpu.environment)
        for line in run.stdout:
            child = int(line.split()[1]) if line.startswith("pid ") else child
            if line.startswith("step 3"):
                break
        check(files_in(spilled), "it has moved nothing to the SSD yet")
        os.kill(child, signal.SIGKILL)
        _, said = run.communicate(timeout=60)
        check(run.returncode == 137 and "cuda:0" in said, run.returncode, said)
        check(not files_in(spilled) and not os.path.exists(f"/proc/{child}"), files_in(spilled))


def files_in(folder):
    """What any process has open there: the file of the tensors has no name."""
    links = []
    for fd in glob.glob("/proc/[0-9]*/fd/*"):
        try:
            links.append(os.readlink(fd))
        except OSError:  # gone, or somebody else's
            pass
    return [link for link in links if link.startswith(folder + "/")]


@normal()
def tells_what_device_it_limits(libraries):
    gpu = Gpu(libraries)
    ends = {
        ("--device", "gpu"): (2, "--device gpu: it is auto, cpu, cuda, or cuda:N"),
        ("--device", "cuda:7"): (1, "cuda:7"),
        ("--device", "cpu", "--pinned-memory", "1GiB"): (2, "--pinned-memory"),
        ("--device", "cpu", "--strict"): (2, "--strict"),
        ("--device", "cpu", "--block-size", "4MiB"): (2, "--block-size: it is for a GPU"),
        ("--device", "cuda", "--block-size", "3MiB"): (2, "--block-size 3MiB: blocks have 2MiB"),
        ("--device", "cuda", "--device-memory", "16MiB", "--block-size", "32MiB"): (2, "less than one block of 32 MiB"),
        ("--device", "cuda", "--device-memory", "64GiB"): (2, "more than the 8 GiB"),
        ("--device", "cuda", "--pinned-memory", "64MiB", "--host-memory", "64MiB"): (2, "--host-memory 64 MiB is more than"),
    }
    for options, (status, words) in ends.items():
        memory = [] if "--device-memory" in options else ["--device-memory", "64MiB"]
        done = subprocess.run([gpu.spillway, "run", *memory, *options, "--", "true"], capture_output=True, text=True, timeout=60, env=gpu.environment)
        check(done.returncode == status and words in done.stderr, options, done.returncode, done.stderr)
    shown = subprocess.run([gpu.spillway, "calibrate", "--device", "cuda:0", "--json"], capture_output=True, text=True, timeout=60, env=gpu.environment)
    check(json.loads(shown.stdout)["gpu"]["memory_bytes"] == 8 << 30, shown)
    shown = subprocess.run([gpu.spillway, "machines", "this-gpu", "--toml"], capture_output=True, text=True, timeout=60, env=gpu.environment)
    check("keeps_copies = 1" in shown.stdout, shown)
    done, report = gpu.limited(64 << 20, "/dev/null")
    check(not report["made_tensors"] and "give --device cpu" in done.stderr, done.stderr)


main()
