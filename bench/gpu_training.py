#!/usr/bin/env python3
"""Trains the examples on a GPU with parts of the memory that they use, beside plain PyTorch and beside torch.autograd.graph.save_on_cpu:

    bench/gpu_training.py SPILLWAY [--models gpt,resnet] [--parts 110,75,50,25] [--steps 12] [--within SECONDS] [--json FILE]

Each run is a process of its own. Losses and weights must be those of plain PyTorch, to the bit. Exit status 1: some were not, or
not all was reached; 77: there is no GPU. `--through "strict_device.py LIBRARY" --device strict` tries the program without a GPU."""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = {"gpt": ["train_gpt.py", "--batch", "8", "--length", "512"], "resnet": ["train_resnet.py", "--batch", "64", "--size", "224"],
          "small": ["train_gpt.py", "--layers", "2", "--width", "256", "--batch", "2", "--length", "32", "--words", "1000"]}
SAVE_ON_CPU = "import runpy, sys, torch\nsys.argv = sys.argv[1:]\nwith torch.autograd.graph.save_on_cpu(pin_memory=True):\n    runpy.run_path(sys.argv[0], run_name='__main__')\n"


class Bench:
    def __init__(self, options):
        self.options, self.deadline = options, time.monotonic() + options.within
        # What PyTorch asks for before cuBLAS gives the same bits each time.
        self.environment = {**os.environ, "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}

    def run(self, *command):
        left = self.deadline - time.monotonic()
        if left < 5:
            return None
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=left, env=self.environment)
        except subprocess.TimeoutExpired:
            return None
        times = [float(found) for found in re.findall(r" seconds ([0-9.]+)", done.stdout)]
        lines = [line.partition(" seconds")[0] for line in done.stdout.splitlines()]
        if done.returncode != 0 or len(times) < 4:
            return {"error": done.stderr[-2000:] or f"status {done.returncode}"}
        return {"seconds": statistics.median(times[len(times) // 2:]), "lines": lines}

    def limited(self, part, peak, *command):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.json")
            memory = ["--device-memory", f"{peak * part // 100 >> 20}MiB"] if part else []
            device = "cuda" if self.options.device == "strict" else self.options.device
            ran = self.run(self.options.spillway, "run", "--quiet", "--device", device, *memory, "--json", path, "--", *command)
            if ran is not None and os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    ran["report"] = json.load(file)
            return ran


def row(name, ran, plain):
    if ran is None:
        return f"{name:<24} not reached"
    if "error" in ran:
        return f"{name:<24} failed: {(ran.get('report') or {}).get('error') or ran['error'].strip().splitlines()[-1]}"
    report = ran.get("report") or {}
    plan = (report.get("plan") or {}).get("policy") or "-"
    stall = f"{report['stall_seconds']:.2f}" if report else ""
    same = "same bits" if ran["lines"] == plain["lines"] else "DIFFERENT"
    return f"{name:<24} {ran['seconds']:>9.3f} s {ran['seconds'] / plain['seconds']:>6.2f}  {same:<10} {stall:>8}  {plan}"


def train(bench, model):
    options = bench.options
    name, *arguments = MODELS[model]
    script = [os.path.join(HERE, "..", "examples", name), *arguments, "--steps", str(options.steps), "--device", options.device]
    command = [sys.executable, *options.through.split(), *script]
    results = {"plain": bench.run(*command)}
    plain = results["plain"]
    if plain is None or "error" in plain:
        print(row(f"{model} plain", plain, plain), flush=True)
        return results
    print(f"{model:<24} {'a step':>11} {'ratio':>6}  {'':<10} {'waited':>8}  plan\n{row('plain PyTorch', plain, plain)}", flush=True)
    if not options.through:
        results["save_on_cpu"] = bench.run(sys.executable, "-c", SAVE_ON_CPU, *script)
        print(row("save_on_cpu", results["save_on_cpu"], plain), flush=True)
    results["unlimited"] = bench.limited(None, 0, *command)
    print(row("spillway, no limit", results["unlimited"], plain), flush=True)
    peak = ((results["unlimited"] or {}).get("report") or {}).get("peak_device_bytes")
    for part in map(int, options.parts.split(",")) if peak else []:
        results[part] = bench.limited(part, peak, *command)
        print(row(f"spillway, {part} %", results[part], plain), flush=True)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spillway")
    parser.add_argument("--models", default="gpt,resnet")
    parser.add_argument("--parts", default="110,75,50,25", help="per cent of the peak")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--within", type=float, default=900, help="seconds, all together")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--through", default="", help="a program that runs the script")
    parser.add_argument("--json")
    options = parser.parse_args()
    if not options.through:
        import torch
        if not torch.cuda.is_available():
            print("there is no GPU that PyTorch can use")
            return 77
    bench = Bench(options)
    results = {model: train(bench, model) for model in options.models.split(",")}
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    good = all(ran is not None and ran.get("lines") and ran["lines"] == of_model["plain"]["lines"]
               for of_model in results.values() for name, ran in of_model.items() if name != "save_on_cpu")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
