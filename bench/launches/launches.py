#!/usr/bin/env python3
"""Checks on a GPU that the launch shim sees every launch, and every pointer that operators hand to kernels; and what seeing costs.

    python3 bench/launches/launches.py SHIM LOG [--json FILE] [--part counts|pointers|cost] [--within SECONDS]

SHIM is libspillway_cuda.so, LOG liblaunch_log.so. Needs PyTorch for CUDA. Each part is a process that has the shim preloaded.
Exit status 0: all holds, 1: something does not, 3: not all was reached, 77: there is no CUDA driver.

  counts     kernels, copies and sets of one training step: as many as torch.profiler counts?
  pointers   each tensor among an operator's arguments and results: does a launch of that operator point into it?
  cost       100,000 additions of one number, without the shim, with it, and watched with 10,000 ranges
"""

import argparse
import collections
import ctypes
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time

KINDS = ("kernels", "copies", "sets", "graphs")
ADDITIONS, RANGES = 100_000, 10_000
SECONDS = {"counts": 90, "pointers": 45, "cost": 60}

# Tensors that no kernel of these operators is given: they are asked for shape and type alone, or made and not used (read in
# PyTorch's sources). They are counted apart.
EXPLAINED = {
    "aten.zeros_like": {"self"}, "aten.ones_like": {"self"}, "aten.full_like": {"self"}, "aten.empty_like": {"self"},
    "aten.rand_like": {"self"}, "aten.new_zeros": {"self"}, "aten.new_ones": {"self"}, "aten.new_full": {"self"},
    "aten.new_empty": {"self"}, "aten.nll_loss_backward": {"self"}, "aten.max_pool2d_with_indices_backward": {"self"},
    "aten.native_layer_norm_backward": {"bias"}, "aten.cudnn_batch_norm_backward": {"running_mean", "running_var"},
    # Random numbers' state, where nothing is dropped.
    "aten._scaled_dot_product_flash_attention": {"result"}, "aten._scaled_dot_product_cudnn_attention": {"result"},
    "aten._scaled_dot_product_flash_attention_backward": {"philox_seed", "philox_offset"},
    "aten._scaled_dot_product_cudnn_attention_backward": {"philox_seed", "philox_offset"},
}


PLAIN = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "SPILLWAY_CUDA_DRIVER")}


def driver_path():
    """The real driver's absolute path, as the dynamic loader finds it in a process without the shim."""
    script = """import ctypes
ctypes.CDLL("libcuda.so.1")
print(next(line.split()[-1] for line in open("/proc/self/maps") if "/libcuda.so" in line))"""
    done = subprocess.run([sys.executable, "-c", script], env=PLAIN, capture_output=True, text=True, timeout=60)
    return done.stdout.strip() if done.returncode == 0 else None


class Record(ctypes.Structure):
    _fields_ = [("function", ctypes.c_uint64), ("stream", ctypes.c_uint64), ("first_address", ctypes.c_uint64),
                ("addresses", ctypes.c_uint64), ("kind", ctypes.c_uint8), ("is_complete", ctypes.c_uint8),
                ("is_captured", ctypes.c_uint8), ("unused", ctypes.c_uint8 * 5)]


class LaunchLog:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.launch_log_records.restype = ctypes.POINTER(Record)
        self.library.launch_log_addresses.restype = ctypes.POINTER(ctypes.c_uint64)
        self.library.launch_log_name.restype = ctypes.c_char_p
        for name in ("launch_log_size", "launch_log_unwatched"):
            getattr(self.library, name).restype = ctypes.c_uint64
        assert self.library.launch_log_has_shim(), "the shim is not preloaded"

    def start(self):
        self.library.launch_log_start()

    def stop(self):
        self.library.launch_log_stop()

    def add(self, begin, size):
        return self.library.launch_log_add(ctypes.c_uint64(begin), ctypes.c_uint64(size))

    def records(self):
        return self.library.launch_log_records()[:self.library.launch_log_size()]

    def addresses(self):
        records = self.records()
        return self.library.launch_log_addresses()[:sum(record.addresses for record in records)]

    def name(self, record):
        return (self.library.launch_log_name(ctypes.c_uint64(record.function)) or b"?").decode()


class Written(dict):
    """Answers that are in the file as soon as they are given: what is asked next may hang."""

    def __init__(self, path):
        super().__init__()
        self.path = path

    def __setitem__(self, name, answer):
        super().__setitem__(name, answer)
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            json.dump(self, file)
        os.replace(self.path + ".new", self.path)  # Whole, if this process is ended meanwhile.


# --- What is trained: each gives a function that trains one step


def resnet50(torch, device, small):
    nn = torch.nn

    class Bottleneck(nn.Module):
        def __init__(self, inputs, width, stride):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
                nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
                nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width))
            self.shortcut = nn.Identity() if inputs == 4 * width and stride == 1 else nn.Sequential(
                nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))
            self.last = nn.ReLU(inplace=True)

        def forward(self, x):
            return self.last(self.body(x) + self.shortcut(x))

    blocks, inputs = [], 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)) if not small else ((64, 1, 1),):
        for i in range(count):
            blocks.append(Bottleneck(inputs, width, stride if i == 0 else 1))
            inputs = 4 * width
    model = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1),
                          *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000)).to(device)
    images = torch.randn(4 if small else 16, 3, 64 if small else 224, 64 if small else 224, device=device)
    labels = torch.randint(1000, (len(images),), device=device)
    return trained(torch, model, lambda: nn.functional.cross_entropy(model(images), labels),
                   torch.optim.SGD(model.parameters(), 0.1, momentum=0.9))


def gpt2(torch, device, small, **options):
    nn, width, heads, layers, words = torch.nn, 128 if small else 768, 2 if small else 12, 2 if small else 12, 512 if small else 50257

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width), nn.Dropout(0.1))

        def forward(self, x):
            batch, length, _ = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, heads, -1).permute(2, 0, 3, 1, 4)
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
            return x + self.mlp(self.norm2(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Embedding(1024, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

        def forward(self, x):
            places = torch.arange(x.shape[1], device=x.device)
            return self.head(self.norm(self.blocks(self.words(x) + self.places(places))))

    model = Model().to(device)
    text = torch.randint(words, (2, 65 if small else 513), device=device)

    def loss():
        with torch.autocast(device, torch.bfloat16):
            logits = model(text[:, :-1])
        return nn.functional.cross_entropy(logits.flatten(0, 1).float(), text[:, 1:].flatten())

    return trained(torch, model, loss, torch.optim.AdamW(model.parameters(), 1e-4, **options))


def lstm(torch, device, small):
    size = 32 if small else 512
    model = torch.nn.LSTM(size, size, 2, batch_first=True).to(device)
    sequence = torch.randn(8, 20, size, device=device)
    return trained(torch, model, lambda: model(sequence)[0].square().mean(), torch.optim.SGD(model.parameters(), 0.1))


def compiled(torch, device, small):
    size = 64 if small else 1024
    model = torch.nn.Sequential(torch.nn.Linear(size, size), torch.nn.GELU(), torch.nn.LayerNorm(size), torch.nn.Linear(size, size)).to(device)
    run = torch.compile(model)
    inputs = torch.randn(64, size, device=device)
    return trained(torch, model, lambda: run(inputs).square().mean(), torch.optim.AdamW(model.parameters(), 1e-4, foreach=True))


def trained(torch, model, loss, optimizer):
    def step():
        optimizer.zero_grad(set_to_none=True)
        loss().backward()
        optimizer.step()
    return step


def models(torch, device, small):
    """Name, step, and whether its operators are called one by one."""
    yield "ResNet-50, SGD", resnet50(torch, device, small), True
    yield "GPT-2, foreach AdamW", gpt2(torch, device, small, foreach=True), True
    yield "GPT-2, fused AdamW", gpt2(torch, device, small, fused=True), True
    yield "LSTM, SGD", lstm(torch, device, small), True
    if not small:
        yield "torch.compile, AdamW", compiled(torch, device, small), False


# --- The parts


def of_profiler(profile):
    """How many of each kind the profiler has seen on the device."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profile.export_chrome_trace(path)
        with open(path, encoding="utf-8") as file:
            categories = collections.Counter(event.get("cat") for event in json.load(file)["traceEvents"])
    return collections.Counter({"kernels": categories["kernel"], "copies": categories["gpu_memcpy"], "sets": categories["gpu_memset"]})


def counts(torch, log, answers, device="cuda"):
    for name, step, _ in models(torch, device, False):
        for _ in range(4):
            step()
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            log.start()
            step()
            torch.cuda.synchronize()
            log.stop()
        profiled = of_profiler(profile)
        seen = collections.Counter(KINDS[record.kind] for record in log.records() if not record.is_captured)
        unknown = collections.Counter(log.name(record) for record in log.records() if not record.is_complete)
        answers[name] = {"seen": dict(seen), "profiled": dict(profiled), "unknown layouts": dict(unknown),
                         "holds": all(seen[kind] == profiled[kind] for kind in KINDS) and not unknown}
        print(f"{name:<24}" + "".join(f" {kind} {seen[kind]:>5} of {profiled[kind]:<5}" for kind in KINDS[:3]) +
              f" {len(unknown)} unknown layouts   {'holds' if answers[name]['holds'] else 'DOES NOT HOLD'}", flush=True)
        for kernel, count in unknown.items():
            print(f"    unknown layout, {count} times: {kernel[:140]}")
        answers["functions handed out unwatched"] = log.library.launch_log_unwatched()


def tensors_of(torch, func, args, kwargs, results):
    """(name of the argument or result, tensor) of an operator's call."""
    from torch.utils._pytree import tree_flatten
    names = [argument.name for argument in func._schema.arguments]
    for name, value in [*zip(names, args), *kwargs.items(), ("result", results)]:
        for tensor in tree_flatten(value)[0]:
            if isinstance(tensor, torch.Tensor):
                yield name, tensor


def missed(torch, func, args, kwargs, results, addresses, device):
    """The names of those whose bytes no address points into, as far as they have any on the device."""
    for name, tensor in tensors_of(torch, func, args, kwargs, results):
        if tensor.device.type != device or tensor.numel() == 0 or tensor.layout != torch.strided:
            continue
        storage = tensor.untyped_storage()  # views of one allocation move with it
        begin, end = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
        if not any(begin <= address < end for address in addresses):
            yield name


def pointers(torch, log, answers, device="cuda"):
    from torch.utils._python_dispatch import TorchDispatchMode
    known = set()

    def register_segments():
        for segment in torch.cuda.memory_snapshot():
            if segment["address"] not in known and log.add(segment["address"], segment["total_size"]):
                known.add(segment["address"])

    class Check(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.calls = collections.Counter()
            self.missed, self.explained = (collections.defaultdict(collections.Counter) for _ in range(2))

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            log.start()
            results = func(*args, **(kwargs or {}))
            launched = len(log.records())
            if launched:
                name = str(func.overloadpacket)
                self.calls[name] += 1
                for argument in set(missed(torch, func, args, kwargs or {}, results, log.addresses(), device)):
                    where = self.explained if argument in EXPLAINED.get(name, ()) else self.missed
                    where[name][argument] += 1
            return results

    for name, step, one_by_one in models(torch, device, False):
        if not one_by_one:
            continue
        for _ in range(3):
            step()
        torch.cuda.synchronize()
        register_segments()
        with Check():  # may want memory that the steps before did not
            step()
        register_segments()
        with Check() as check:
            step()
        log.stop()
        answers[name] = {"operators with launches": sum(check.calls.values()), "kinds": len(check.calls),
                         "arguments not pointed to": {op: dict(each) for op, each in check.missed.items()},
                         "explained": {op: dict(each) for op, each in check.explained.items()},
                         "holds": not check.missed}
        print(f"{name:<24} {sum(check.calls.values()):>6} calls of {len(check.calls):>3} operators   "
              f"{'holds' if not check.missed else 'DOES NOT HOLD'}", flush=True)
        for operator, each in check.missed.items():
            print(f"    {operator}: " + ", ".join(f"{argument} ({count} of {check.calls[operator]} calls)" for argument, count in each.items()))


def additions(torch, log, ranges, watched):
    number = torch.zeros(1, device="cuda")
    for i in range(ranges):
        log.add((1 << 44) + (i << 21), 1 << 21)
    if watched:
        log.add(number.data_ptr(), 512)
        log.library.launch_log_watch_only()
    best = None
    for _ in range(5):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(ADDITIONS // 5):
            number.add_(1)
        torch.cuda.synchronize()
        taken = (time.perf_counter() - begin) / (ADDITIONS // 5) * 1e6
        best = taken if best is None else min(best, taken)
    assert number.item() == ADDITIONS
    return best


def cost(environment, script, until):
    answers = {}
    ways = {"without the shim": (PLAIN, "without"), "with the shim": (environment, "with"), "watched, 10,000 ranges": (environment, "watched")}
    failed = None
    for name, (env, way) in [*ways.items()] * 2:
        try:
            done = subprocess.run([*script, "--inside", "additions-" + way], env=env, capture_output=True, text=True,
                                  timeout=max(until - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            failed = f"{name}: no end in time"
            break
        if done.returncode:
            failed = f"{name}: {done.stderr[-2000:]}"
            break
        answers.setdefault(name, []).append(float(done.stdout))
    answers = {name: min(each) for name, each in answers.items()}
    if len(answers) < len(ways):  # The second round is for better figures only.
        return answers | {"not reached": failed}
    answers["watched adds"] = answers["watched, 10,000 ranges"] - answers["without the shim"]
    answers["holds"] = answers["watched adds"] <= 0.5
    for name, microseconds in answers.items():
        if name != "holds":
            print(f"  {name:<28} {microseconds:7.3f} us an addition")
    print(f"  at most 0.5 us more: {'holds' if answers['holds'] else 'DOES NOT HOLD'}", flush=True)
    return answers


def inside(options):
    """In the process of a part."""
    import torch
    part = options.inside
    log = LaunchLog(options.log) if part != "additions-without" else None
    if part.startswith("additions-"):
        watched = part == "additions-watched"
        print(additions(torch, log, RANGES if watched else 0, watched))
    else:
        {"counts": counts, "pointers": pointers}[part](torch, log, Written(options.json))


def ask(part, script, environment, file, seconds):
    """What a part has answered, also if it did not end."""
    if os.path.exists(file):
        os.remove(file)
    try:
        status = subprocess.run([*script, "--inside", part, "--json", file], env=environment, timeout=seconds).returncode
        end = {} if status == 0 else {"not reached": f"it ended with status {status}"}
    except subprocess.TimeoutExpired:
        end = {"not reached": f"no end within {seconds:.0f} s"}
    if not os.path.exists(file):
        return end
    with open(file, encoding="utf-8") as written:
        answers = json.load(written) | end
    os.remove(file)
    return answers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shim")
    parser.add_argument("log")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--part", choices=SECONDS, help="only this one")
    parser.add_argument("--within", type=float, default=sum(SECONDS.values()), metavar="SECONDS", help="in all")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return inside(options)
    driver = driver_path()
    if driver is None:
        print("there is no CUDA driver here: nothing was checked")
        return 77
    if importlib.util.find_spec("torch") is None:
        print(f"{sys.executable} has no PyTorch: nothing was checked; name a Python that has it")
        return 3
    script = [sys.executable, os.path.abspath(__file__), options.shim, options.log]
    environment = dict(os.environ, SPILLWAY_CUDA_DRIVER=driver, LD_PRELOAD=os.path.abspath(options.shim))
    answers, until, holds, all_reached = {}, time.monotonic() + options.within, True, True
    for part in [options.part] if options.part else SECONDS:
        print(f"{part}:", flush=True)
        left = min(SECONDS[part], until - time.monotonic())
        if left < 5:
            answers[part] = {"not reached": "no time was left"}
        elif part == "cost":
            answers[part] = cost(environment, script, time.monotonic() + left)
        else:
            answers[part] = ask(part, script, environment, f"{options.json or '/tmp/launches'}.{part}", left)
        if "not reached" in answers[part]:
            print(f"  not all was reached: {answers[part]['not reached']}", flush=True)
            all_reached = False
        holds &= all(each["holds"] for each in [*answers[part].values(), answers[part]] if isinstance(each, dict) and "holds" in each)
        if options.json:  # after each part: the next may hang
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump(answers, file, indent=1)
    return 1 if not holds else 0 if all_reached else 3


if __name__ == "__main__":
    sys.exit(main())
