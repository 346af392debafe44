#!/usr/bin/env python3
"""Trains the examples on a GPU with parts of the memory that they use, beside plain PyTorch, torch.autograd.graph.save_on_cpu and FSDP2 with
CPUOffloadPolicy, and says of each target whether it holds:

    bench/gpu_training.py SPILLWAY [--within SECONDS] [--only MODEL,...] [--json FILE]

Each run is a process of its own. The most telling come first, and it stops in time. FILE has all that was found. If it is there already, only
what is missing is asked: so a second call goes on. What another build or other examples have found is asked again.

Exit status 0: all holds, 1: something does not, or was not reached, 77: there is no GPU. Without a GPU, the program itself can be tried:
--small --device strict --through "tests/torch/device/strict_device.py LIBRARY"."""

import argparse
import dataclasses
import glob
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpu"))

import verdicts
from models import RANDOM, SMALL, large_for, order
from runs import EXAMPLES, HERE, Runs

CARD = """
import torch
if not torch.cuda.is_available(): raise SystemExit(77)
print(torch.cuda.get_device_properties(0).total_memory, torch.cuda.get_device_name(0), "torch", torch.__version__)
"""


def card():
    """The bytes of its memory and what it is. A process of its own asks: who asks keeps some of it."""
    done = subprocess.run([sys.executable, "-c", CARD], capture_output=True, text=True)
    if done.returncode == 77:
        print("there is no GPU that PyTorch can use")
        sys.exit(77)
    if done.returncode != 0:
        sys.exit(f"PyTorch could not be asked for a GPU; which Python has it?\n{done.stderr[-2000:]}")
    memory, name = done.stdout.strip().split(maxsplit=1)
    return int(memory), name


def fingerprint(spillway, name):
    """Of all that the figures depend on."""
    folder = os.path.dirname(os.path.abspath(spillway))
    files = [spillway, *glob.glob(f"{folder}/libspillway*.so"), *glob.glob(f"{folder}/src/hook/**/libspillway*.so", recursive=True),
             *glob.glob(f"{EXAMPLES}/*.py"), *glob.glob(f"{HERE}/*.py")]
    digest = hashlib.sha256(name.encode())
    for file in sorted(files):
        with open(file, "rb") as opened:
            digest.update(opened.read())
    return digest.hexdigest()


def found_before(path, of):
    if not path or not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        before = json.load(file)
    if before["of"] != of:
        print(f"{path} is of another build, of other examples or of another GPU: all is asked again")
        return {}
    reached = {model: {run: ran for run, ran in runs.items() if "not_reached" not in ran} for model, runs in before["results"].items()}
    print(f"{sum(map(len, reached.values()))} runs are in {path} already")
    return reached


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spillway")
    parser.add_argument("--within", type=float, default=530, help="seconds, all together (default %(default)s)")
    parser.add_argument("--only", help="these models, with commas between them, of: " + ", ".join([*SMALL, RANDOM]))
    parser.add_argument("--programs", type=int, default=1000, help="random ones (default %(default)s)")
    parser.add_argument("--device", default="cuda", help="as PyTorch names it (default %(default)s)")
    parser.add_argument("--through", default="", help="a program that runs the scripts")
    parser.add_argument("--small", action="store_true", help="small models")
    parser.add_argument("--json", metavar="FILE", help="write all that was found there, after each run")
    options = parser.parse_args()

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # The run under way must not outlive us.
    memory, name = (0, options.device) if options.small else card()
    models = SMALL if options.small else large_for(memory)
    asked = order(models)
    if options.only:
        only = options.only.split(",")
        if unknown := set(only) - {*models, RANDOM}:
            parser.error(f"argument --only: there is no {', '.join(unknown)}")
        asked = [(model, run) for model, run in asked if model in only]
    of = fingerprint(options.spillway, name)
    results = found_before(options.json, of)
    print(f"on {name}: {len(asked)} runs within {options.within:.0f} s", flush=True)
    with tempfile.TemporaryDirectory() as options.folder:
        runs = Runs(options, models, results)
        for model, run in asked:
            runs.ask(model, run)
            print(verdicts.line_of(model, run, models.get(model), results[model]), flush=True)
            found = verdicts.verdicts_of(models, results, asked)
            if options.json:
                write(options.json, {"of": of, "device": name, "results": results, "figures": figures(models, results),
                                     "verdicts": [dataclasses.asdict(verdict) for verdict in found]})
    print("\n" + verdicts.table_of(found))
    return 0 if all(verdict.verdict in (verdicts.HOLDS, verdicts.NO_USE) for verdict in found) else 1


def figures(models, results):
    return {model: {run: verdicts.figures_of(models.get(model), run, runs) for run in runs} for model, runs in results.items()}


def write(path, everything):
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(everything, file, indent=1)
    os.replace(path + ".new", path)  # Whole, if this process is ended meanwhile.


if __name__ == "__main__":
    sys.exit(main())
