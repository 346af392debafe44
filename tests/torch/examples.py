"""examples.py SPILLWAY: each example, small and with half the memory that it needs, prints the losses and the hash of the weights that it
prints without Spillway; one that is stopped and resumed from its checkpoint prints the rest of them."""

import os
import subprocess
import sys
import tempfile

from cases import EXAMPLES, check, half_of, long, main, normal, train, without_times

SMALL = {
    "train_gpt": ["--layers", "2", "--width", "512", "--batch", "2", "--length", "64", "--words", "8000"],
    "train_bert": ["--layers", "2", "--batch", "2", "--length", "32"],
    "train_vit": ["--layers", "5", "--batch", "4"],
    "train_llama": ["--size", "tiny", "--batch", "2", "--length", "64", "--checkpointing", "--autocast"],
    "finetune_lora": ["--layers", "2", "--batch", "2", "--length", "64"],
    "train_dataloader": ["--batch", "8", "--size", "64"],
}


def limited(spillway, memory, name, *options):
    return train(spillway, memory, "auto", EXAMPLES, f"{name}.py", *SMALL[name], *options)


def half_of_what(spillway, name):
    return half_of(limited(spillway, "4GiB", name, "--steps", "2")[1])


def alone(name, *options):
    line = [sys.executable, os.path.join(EXAMPLES, f"{name}.py"), *SMALL[name], *options]
    return without_times(subprocess.run(line, capture_output=True, text=True, check=True, timeout=300).stdout)


@normal("train_gpt")
@long("train_bert")
@long("train_vit")
@long("train_llama")
@long("finetune_lora")
@long("train_dataloader")
def the_same_with_half_the_memory(spillway, name):
    memory = half_of_what(spillway, name)
    printed, report = limited(spillway, memory, name, "--steps", "6")
    check(printed == alone(name, "--steps", "6") and len(printed) == 7, name, printed)
    check(sum(report["moved_bytes"].values()) > 0, name, memory, report)
    print("ok", name, memory, [iteration["phase"] for iteration in report["iterations"]], flush=True)


@long("train_dataloader")
def the_same_when_resumed(spillway, name):
    memory = half_of_what(spillway, name)
    with tempfile.TemporaryDirectory() as folder:
        resumed = ["--checkpoint", os.path.join(folder, "checkpoint")]
        first, _ = limited(spillway, memory, name, "--steps", "4", *resumed)
        rest, _ = limited(spillway, memory, name, "--steps", "8", *resumed)
    check(first[:-1] + rest == alone(name, "--steps", "8"), first, rest)


main()
