#!/usr/bin/env python3
"""Kernels that use more than the memory there is, under `spillway run` and under the operating system's swap, in turns.

    python3 bench/oversized.py build/spillway [--kernels einsum,sort] [--parts 75,50,35] [--rounds 3] [--limit 120]

Each kernel runs three times in a process of its own: with all the memory (bare), in that part of its peak (spillway), and under swap
in a memory control group (needs root). Tensors have the same memory in both: before the first tensor, what Python and PyTorch take is
locked in memory, and the group may use so much more. Else swap would take some 250 MiB from the interpreter, more than most kernels
need. A figure is the median over the rounds of the best of the three. What takes longer than --limit seconds is ended, and counts as
that. Swap may be too slow for the kernel, which kills the process then. Results must be equal in all cells. Nothing else may run
meanwhile.
"""

import argparse
import ctypes
import hashlib
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time


def einsum(torch):
    """Copies each side, then multiplies 64 MiB by 64 MiB."""
    x = torch.randn(128, 4, 32768)
    return lambda: torch.einsum("aof,bof->ab", x, x)


def matmul(torch):
    """128 MiB by 128 MiB."""
    x, y = torch.randn(128, 1 << 18), torch.randn(128, 1 << 18)
    return lambda: x @ y.t()


def conv2d_backward(torch):
    x, convolution = torch.randn(8, 32, 256, 256, requires_grad=True), torch.nn.Conv2d(32, 32, 3, padding=1)
    y = convolution(x)
    ones = torch.ones_like(y)
    return lambda: torch.autograd.grad(y, [x, convolution.weight], ones, retain_graph=True)


def conv3d_backward(torch):
    x, convolution = torch.randn(1, 24, 88, 88, 88, requires_grad=True), torch.nn.Conv3d(24, 12, 3, padding=1)
    y = convolution(x)
    ones = torch.ones_like(y)
    return lambda: torch.autograd.grad(y, [x, convolution.weight], ones, retain_graph=True)


def jacobians(torch):
    """A kernel matrix of a small net: its jacobian of each sample, times all the others."""
    from torch.func import functional_call, jacrev, vmap
    net = torch.nn.Sequential(torch.nn.Linear(256, 128), torch.nn.ReLU(), torch.nn.Linear(128, 4))
    weights = {name: parameter.detach() for name, parameter in net.named_parameters()}
    x = torch.randn(128, 256)

    def kernel_matrix():
        each = vmap(jacrev(lambda w, row: functional_call(net, w, (row,))), (None, 0))(weights, x)
        flat = [jacobian.flatten(2) for jacobian in each.values()]
        return sum(torch.einsum("aof,bof->ab", one, one) for one in flat)
    return kernel_matrix


def sort(torch):
    """200 MiB, and the places of all."""
    x = torch.randn(50 << 20)
    return lambda: torch.sort(x)


def index_put(torch):
    """Adds to random rows."""
    table, rows = torch.zeros(1 << 17, 256), torch.randint(1 << 17, (1 << 16,))
    values = torch.randint(-8, 8, (1 << 16, 256)).float()  # Sums of these are the same in any order.
    return lambda: table.zero_().index_put_((rows,), values, accumulate=True)


def coalesce(torch):
    places, values = torch.randint(1 << 20, (2, 4 << 20)), torch.randn(4 << 20)
    sparse = torch.sparse_coo_tensor(places, values, (1 << 20, 1 << 20), check_invariants=False)

    def both():
        whole = sparse.coalesce()
        return whole.indices(), whole.values()
    return both


def embedding_backward(torch):
    """The gradient of 128 MiB of rows, from random ones."""
    table = torch.nn.Embedding(1 << 17, 256)
    y = table(torch.randint(1 << 17, (1 << 16,)))
    ones = torch.randn_like(y)
    return lambda: torch.autograd.grad(y, table.weight, ones, retain_graph=True)


def lstm(torch):
    """Forward and backward over 2,048 time steps."""
    net, x = torch.nn.LSTM(128, 128), torch.randn(2048, 32, 128)
    return lambda: torch.autograd.grad(net(x)[0].square().mean(), list(net.parameters()))


def sort_columns(torch):
    """128 MiB, each column by itself."""
    x = torch.randn(8192, 4096)
    return lambda: torch.sort(x, dim=0)


def cumsum_columns(torch):
    x = torch.randn(8192, 4096)
    return lambda: torch.cumsum(x, 0)


def transpose(torch):
    """128 MiB, into 128 MiB."""
    x = torch.randn(4096, 8192)
    return lambda: x.t().contiguous()


KERNELS = {one.__name__: one for one in (einsum, matmul, conv2d_backward, conv3d_backward, jacobians, sort, index_put, coalesce,
                                         embedding_backward, lstm, sort_columns, cumsum_columns, transpose)}
TIMES = 3


def lock_all():
    """What this process has in memory stays there; what it makes from now on may leave."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/maps", encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if "w" not in words[1] or (len(words) > 5 and words[5] in ("[vvar]", "[vsyscall]")):
                continue
            begin, end = (int(address, 16) for address in words[0].split("-"))
            on_fault = 1
            if libc.mlock2(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), on_fault) != 0:
                raise OSError(ctypes.get_errno(), "mlock2 of " + line)


def compute(name, locked):
    """Runs in a process of its own: prints the seconds of each time, and a hash of the last result."""
    import torch
    torch.manual_seed(0)
    torch.set_num_threads(2)
    (torch.ones(64, 64) @ torch.ones(64, 64)).sum().item()
    if locked:
        lock_all()
    if name == "nothing":
        return
    kernel = KERNELS[name](torch)
    for _ in range(TIMES):
        begin = time.perf_counter()
        result = kernel()
        print("seconds", time.perf_counter() - begin, flush=True)
        if _ + 1 < TIMES:
            del result
    digest = hashlib.sha256()
    for tensor in result if isinstance(result, (tuple, list)) else [result]:
        digest.update(tensor.detach().contiguous().numpy())
    print("result", digest.hexdigest())


def seconds_of(command, limit, results, under_swap=False):
    """The best of a run's times; more than the limit: infinite; killed, as the kernel does where memory is short: not a number."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit * TIMES, check=False)
    except subprocess.TimeoutExpired:
        return math.inf
    if under_swap and done.returncode == -signal.SIGKILL:
        return math.nan
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with status {done.returncode}:\n{done.stderr[-1500:]}")
    lines = [line.split() for line in done.stdout.splitlines()]
    results.add(lines[-1][1])
    return min(float(words[1]) for words in lines if words[0] == "seconds")


def median_of(times):
    known = [one for one in times if not math.isnan(one)]
    return statistics.median(known) if known else math.nan


def text_of(seconds, limit):
    if math.isnan(seconds):
        return "killed"
    return f"> {limit}" if math.isinf(seconds) else f"{seconds:.3f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spillway", nargs="?")
    parser.add_argument("--kernels", default=",".join(KERNELS), help="(default: all)")
    parser.add_argument("--parts", default="75,50,35", help="of the peak, in percent (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each cell (default %(default)s)")
    parser.add_argument("--limit", type=int, default=120, help="seconds that one time may take (default %(default)s)")
    parser.add_argument("--compute", choices=["nothing", *KERNELS], help=argparse.SUPPRESS)
    parser.add_argument("--locked", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.compute:
        return compute(options.compute, options.locked)
    if not options.spillway:
        parser.error("which spillway? build/spillway, for example")
    from training import Swap
    print(f"{'':<20}{'part':>6}{'MiB':>7}{'bare s':>10}{'spillway s':>12}{'swap s':>10}{'of bare':>9}{'of swap':>9}")
    ratios, wrong, slow = [], [], []
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        report = os.path.join(folder, "report.json")
        swap = None
        try:
            swap = Swap(folder, 4 << 30)
        except OSError as error:
            print(f"the operating system's swap is left out: {error}", file=sys.stderr)
        this = lambda *arguments: [sys.executable, os.path.abspath(__file__), *arguments]
        at_rest = swap.most_used(this("--compute", "nothing", "--locked")) if swap else 0
        try:
            for name in options.kernels.split(","):
                script = this("--compute", name)
                limited = lambda memory: [options.spillway, "run", "--quiet", "--device-memory", memory, "--json", report, "--", *script]
                results = set()
                seconds_of(limited("8GiB"), options.limit, results)
                with open(report, encoding="utf-8") as file:
                    peak = json.load(file)["peak_device_bytes"]
                for part in map(int, options.parts.split(",")):
                    mebibytes = max(64, peak * part // 100 >> 20)
                    memory = f"{mebibytes}MiB"
                    cells = {"bare": script, "spillway": limited(memory)}
                    if swap:
                        cells["swap"] = swap.command(at_rest + (mebibytes << 20), [*script, "--locked"])
                    times = {cell: [] for cell in cells}
                    for _ in range(options.rounds):
                        for cell, command in cells.items():
                            times[cell].append(seconds_of(command, options.limit, results, cell == "swap"))
                    bare, ours, other = (median_of(times.get(cell, [])) for cell in ("bare", "spillway", "swap"))
                    ratio = ours / min(other, options.limit) if not math.isnan(other) else math.nan
                    ratios.append(ratio)
                    if ratio > 1.2:
                        slow.append(f"{name} at {part} %")
                    print(f"{name:<20}{part:>4} %{memory[:-3]:>7}{bare:>10.3f}{text_of(ours, options.limit):>12}"
                          f"{text_of(other, options.limit):>10}{ours / bare:>9.1f}{ratio:>9.2f}", flush=True)
                if len(results) > 1:
                    wrong.append(name)
        finally:
            if swap:
                swap.end()
    known = [ratio for ratio in ratios if not math.isnan(ratio)]
    if known:
        print(f"of swap's time: {statistics.geometric_mean(known):.2f} in the geometric mean")
    print("slower than 1.2 times swap: " + (", ".join(slow) or "none"))
    print("results: " + (f"DIFFERENT: {', '.join(wrong)}" if wrong else "equal in all cells"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
