"""What is trained, and in which order."""

import dataclasses

GIB = 1 << 30
WHOLE = "no limit"
RANDOM = "random programs"
STRICT, STRICT_STEPS = "50 % strict", 4  # Its launches run one after the other: that is slow.
PEERS = {"save_on_cpu": 1.5, "fsdp2": 2.0}  # how many times as fast as they Spillway shall be, with as much memory of the device


@dataclasses.dataclass(frozen=True)
class Model:
    script: str
    arguments: str
    made: int  # words, or images, in a step
    of: str = "words"
    steps: int = 30
    seconds: float = 15  # about what a run takes on a GPU, with starting it
    least: str = "25 %"  # of its peak: more where one launch (the loss of all words) takes more than that
    memory: str = ""  # the budget that it is asked for, where that is no part of its peak


GPT = "--layers 4 --width 512 --batch 2 --length 64 --words 4000"
LLAMA = "--size tiny --batch 2 --length 64"
SMALL = {  # for a machine without a GPU
    "gpt2": Model("train_gpt.py", GPT, 128, steps=12, seconds=8),
    "gpt2-xl": Model("train_gpt.py", f"{GPT} --build-on-device", 128, steps=12, seconds=8),
    "gpt2-xl checkpointed": Model("train_gpt.py", f"{GPT} --build-on-device --checkpointing", 128, steps=12, seconds=8, memory="96MiB"),
    "resnet50": Model("train_resnet.py", "--batch 2 --size 64", 2, "images", steps=12, seconds=12),
    "vit-l": Model("train_vit.py", "--batch 4 --size 112 --layers 4", 4, "images", steps=12, seconds=8),
    "lora": Model("train_llama.py", f"{LLAMA} --lora 4", 128, steps=12, seconds=8),
    "llama": Model("train_llama.py", f"{LLAMA} --checkpointing", 128, steps=6, seconds=8, memory="96MiB"),
}
XL = "--size xl --build-on-device"
LARGE = {
    "gpt2": Model("train_gpt.py", "--size small --batch 4 --length 1024", 4096, least="45 %"),
    "gpt2-xl": Model("train_gpt.py", f"{XL} --batch 1 --length 1024", 1024, seconds=25),
    "gpt2-xl checkpointed": Model("train_gpt.py", f"{XL} --checkpointing --batch 4 --length 1024", 4096, steps=14, seconds=30, memory="8GiB"),
    "resnet50": Model("train_resnet.py", "--batch 128 --size 224", 128, "images"),
    "vit-l": Model("train_vit.py", "--width 1024 --layers 24 --batch 32", 32, "images", seconds=20),
    "lora": Model("train_llama.py", "--size 1b --lora 16 --build-on-device --batch 2 --length 1024", 2048, seconds=20),
}


def large_for(card):
    """As large a Llama as goes with a card of so many bytes. With fp32 and AdamW 7 billion parameters take 100 GiB, 3 billion 48 GiB."""
    how = "--checkpointing --autocast --build-on-device --no-hash --batch 2 --length 1024"
    size, memory = ("7b", "80GiB") if card >= 84 * GIB else ("7b", WHOLE) if card >= 70 * GIB else ("3b", "16GiB")
    return LARGE | {"llama": Model("train_llama.py", f"--size {size} {how}", 2048, steps=14, seconds=35, memory=memory)}


def order(models):
    """(model, run) of all that is asked, the most telling first. What a run needs to know comes before it."""
    fixed = {name: model.memory for name, model in models.items() if model.memory}
    runs = [("gpt2", "plain"), ("gpt2", WHOLE), ("gpt2", "50 %")]
    runs += [("gpt2-xl checkpointed", fixed["gpt2-xl checkpointed"]), ("gpt2-xl checkpointed", "plain")]
    runs += [("vit-l", run) for run in ("plain", WHOLE, "50 %", "save_on_cpu", "as save_on_cpu")]
    runs += [("llama", fixed["llama"]), ("llama", "plain")]
    runs += [(RANDOM, "plain"), (RANDOM, "limited"), ("gpt2", STRICT)]
    runs += [("gpt2-xl", run) for run in ("plain", WHOLE, "50 %", "fsdp2", "as fsdp2")]
    runs += [(model, run) for model in ("resnet50", "lora") for run in ("plain", WHOLE, "50 %")]
    parted = ("gpt2-xl", "vit-l", "resnet50", "lora", "gpt2")
    runs += [(name, models[name].least) for name in parted] + [(name, "75 %") for name in parted]
    runs += [(name, STRICT) for name in parted]
    runs += [(name, run) for name in parted for peer in PEERS for run in (peer, f"as {peer}")]
    runs += [(name, "110 %") for name in parted]
    return list(dict.fromkeys(runs))
