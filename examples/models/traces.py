#!/usr/bin/env python3
"""Makes the dry-run traces of a paper's models, as files that `spillway reproduce` reads: MODEL.trace.zst. Nothing is
computed and no GPU is needed; times are estimates for the machine. What is there already stays as it is."""

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import time
from typing import NamedTuple

HERE = os.path.dirname(os.path.abspath(__file__))


class Model(NamedTuple):
    script: str
    arguments: tuple
    name: str  # with {} for the batch
    batches: dict  # by what the paper calls them
    ideal_seconds: dict = {}  # published, by batch; empty: nobody has
    by_roofline: tuple = ()  # batches whose estimates are wanted as they are, too


def batches(*numbers):
    return {str(number): number for number in numbers}


def g10_model(script, arguments, name, batch_of_figure_11, ideal_seconds):
    return Model(script, arguments, name + "-{}", batches(*ideal_seconds), ideal_seconds, (batch_of_figure_11,))


ADAMW = ("--optimizer", "adamw")
FUSED = ("--optimizer", "fused-adam")
WIKITEXT = ("--task", "wikitext", *ADAMW)
TENSILE_BATCHES = {"": 16, **{f"-batch-{number}": number for number in (4, 8, 32, 64)}}
PAPERS = {  # the machine, and the models
    # Those of its figure 15. Ideal seconds are the expected results of the artifact: cycles at 1.2 GHz.
    "g10": ("a100", (
        g10_model("bert.py", (), "BERT", 256, {128: 5.906, 256: 7.285, 512: 9.833, 768: 14.124, 1024: 17.441}),
        g10_model("vit.py", ("--model", "s32"), "ViT", 1280, {256: 2.125, 512: 2.539, 768: 2.903, 1024: 3.266, 1280: 3.716}),
        g10_model("vision.py", ("--model", "inception_v3"), "Inceptionv3", 1536,
                  {512: 53.612, 768: 56.463, 1024: 59.313, 1280: 59.949, 1536: 59.694, 1792: 59.439}),
        g10_model("vision.py", ("--model", "resnet152"), "ResNet152", 1280, {256: 106.107, 512: 108.418, 768: 109.811, 1024: 111.203, 1280: 112.589}),
        g10_model("vision.py", ("--model", "senet154"), "SENet154", 1024, {256: 129.431, 512: 131.259, 768: 133.086, 1024: 132.870}))),
    "deepum": ("v100-32", (  # batches of its figure 9, and the largest of its tables 3 and 7; the 16 GB card is as fast
        Model("bert.py", WIKITEXT, "BERT-B-{}", batches(29, 30, 31, 256)),
        Model("dlrm.py", ("--size", "mlperf"), "DLRM-{}", {f"{n}K": n * 1024 for n in (96, 128, 160, 192, 224, 512)}),
        Model("bert.py", ("--size", "large", *WIKITEXT), "BERT-L-{}", batches(14, 16, 18, 192)),
        Model("gpt2.py", ("--size", "large"), "GPT-2-L-{}", batches(3, 5, 7, 24)),
        Model("gpt2.py", ("--size", "xl"), "GPT-2-XL-{}", batches(3, 5, 7, 16)),
        Model("vision.py", ("--model", "resnet152", "--optimizer", "momentum"), "ResNet152-{}", batches(1280, 1536, 1792)),
        Model("vision.py", ("--model", "resnet200"), "ResNet200-{}", batches(1024, 1280, 1536, 2304)),
        Model("bert.py", ("--size", "large", *ADAMW), "BERT-L-CoLA-{}", batches(64)),
        Model("vision.py", ("--model", "resnet200", "--size", "32", "--classes", "10"), "ResNet200-CIFAR-{}", {"6.4K": 6400}),
        Model("vision.py", ("--model", "mobilenet", "--size", "32", "--classes", "100"), "MobileNet-{}", {"5.1K": 5100}),
        Model("dcgan.py", (), "DCGAN-{}", {"3.5K": 3500}))),
    "tensile": ("a6000", (  # batch 16, and the others of its figure 7
        Model("vision.py", ("--model", "vgg16", *FUSED), "VGG-16{}", TENSILE_BATCHES),
        Model("vision.py", ("--model", "inception_v3", *FUSED), "Inceptionv3{}", TENSILE_BATCHES),
        Model("vision.py", ("--model", "inception_v4", *FUSED), "Inceptionv4{}", TENSILE_BATCHES),
        Model("vision.py", ("--model", "resnet50", *FUSED), "ResNet-50{}", TENSILE_BATCHES),
        Model("vision.py", ("--model", "densenet121", *FUSED), "DenseNet-121{}", TENSILE_BATCHES))),
}


class Task(NamedTuple):
    path: str
    command: tuple


def tasks_of(paper, folder, machine, spillway, only):
    """One for each trace. Where ideal times are published, another one in the folder `scaled`."""
    preset, models = PAPERS[paper]
    tasks = []
    for model in models:
        for label, batch in model.batches.items():
            name = model.name.format(label)
            script = ("--", sys.executable, os.path.join(HERE, model.script), *model.arguments, "--batch", str(batch), "--device", "meta", "--steps", "4")
            dry_run = (spillway, "trace", "--dry-run", "--machine", machine or preset)
            kinds = {}
            if batch in model.by_roofline or not model.ideal_seconds:
                kinds[name] = ()
            if model.ideal_seconds:
                kinds[os.path.join("scaled", name)] = ("--scale-ideal", str(model.ideal_seconds[batch]))
            for place, more in kinds.items():
                path = os.path.join(folder, place + ".trace.zst")
                if re.search(only, place):
                    tasks.append(Task(path, (*dry_run, *more, "-o", path, *script)))
    return tasks


def make(task):
    """What went wrong, or nothing; and the seconds that it took."""
    os.makedirs(os.path.dirname(task.path), exist_ok=True)
    start = time.monotonic()
    result = subprocess.run(task.command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    return result.stderr.strip() if result.returncode else "", time.monotonic() - start


def minutes(seconds):
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("paper", choices=PAPERS)
    options.add_argument("-o", "--output", metavar="DIR", required=True, help="the folder of the traces; G10's have a folder `scaled`, too, of those "
                         "stretched to the published ideal times")
    options.add_argument("--machine", help="a preset or a file: whose times are estimated (default: the paper's)")
    options.add_argument("--only", metavar="REGEX", default="", help="the traces whose name has this, such as DLRM")
    options.add_argument("--jobs", type=int, default=1, help="traces at a time (default %(default)s; a large one takes a GiB)")
    options.add_argument("--spillway", default=shutil.which("spillway") or os.path.join(HERE, "..", "..", "build", "spillway"),
                         help="the program (default %(default)s)")
    options = options.parse_args()
    if not shutil.which(options.spillway):
        sys.exit(f"{options.spillway} is no program: build Spillway, or say --spillway PATH")

    tasks = tasks_of(options.paper, options.output, options.machine, options.spillway, options.only)
    if not tasks:
        sys.exit(f"--only {options.only}: {options.paper} has no such trace")
    missing = [task for task in tasks if not os.path.exists(task.path)]
    print(f"{len(tasks) - len(missing)} of {len(tasks)} traces are there", file=sys.stderr)
    failed, start = 0, time.monotonic()
    pool = concurrent.futures.ThreadPoolExecutor(max(1, options.jobs))
    running = {pool.submit(make, task): task for task in missing}
    try:
        for done, future in enumerate(concurrent.futures.as_completed(running), 1):
            error, seconds = future.result()
            failed += bool(error)
            left = (time.monotonic() - start) / done * (len(missing) - done)
            print(f"{done} of {len(missing)}: {running[future].path}, {minutes(seconds)}{', failed' if error else ''}; about {minutes(left)} left", file=sys.stderr)
            if error:
                print(error, file=sys.stderr)
    except KeyboardInterrupt:  # Those that run have got it, too.
        pool.shutdown(cancel_futures=True)
        print("\ninterrupted: what was made stays, and is not made again", file=sys.stderr)
        return 130
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
