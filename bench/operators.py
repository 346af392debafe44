#!/usr/bin/env python3
"""What Spillway costs an operator: two nets of many small operators, under plain PyTorch and under `spillway run`, in turns.

    python3 bench/operators.py build/spillway [--rounds 5] [--steps 60]

First everything fits. Then each step also adds to 96 MiB of tensors in 64 MiB of memory, so that a plan is followed; the time that
steps wait for memory is taken off there. Printed are the median time of a step, the ratio to plain PyTorch doing the same, and the
difference over the number of operators. Nothing else may run meanwhile.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time


def lstm(torch):
    """Two LSTM cells over 40 time steps."""
    cells = torch.nn.ModuleList([torch.nn.LSTMCell(64, 64), torch.nn.LSTMCell(64, 64)])
    sequence = torch.randn(40, 16, 64)

    def loss():
        states = [(torch.zeros(16, 64), torch.zeros(16, 64)) for _ in cells]
        for x in sequence:
            for i, cell in enumerate(cells):
                states[i] = cell(x, states[i])
                x = states[i][0]
        return x.square().mean()
    return cells, loss


def gpt(torch):
    """Four blocks of width 64."""
    nn, width, length = torch.nn, 64, 32

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            q, k, v = self.qkv(self.norm1(x)).view(4, length, 3, 4, -1).permute(2, 0, 3, 1, 4)
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(4, length, width))
            return x + self.mlp(self.norm2(x))

    model = nn.Sequential(nn.Embedding(256, width), *(Block() for _ in range(4)), nn.LayerNorm(width), nn.Linear(width, 256))
    text = torch.randint(256, (4, length + 1))
    return model, lambda: nn.functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())


NETS = {"lstm": lstm, "gpt": gpt}


def train(name, steps, ballast):
    """Prints the seconds of each step, which also adds to `ballast` MiB of tensors."""
    import torch
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, loss_of = NETS[name](torch)
    held = [torch.zeros(1 << 20) for _ in range(ballast // 4)]
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    for _ in range(steps):
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        for one in held:
            one.add_(1)
        print("seconds", time.perf_counter() - begin)
    print("result", loss.item(), sum(one.sum().item() for one in held))


def run(command):
    """Seconds of each step, and the result."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    *steps, result = [line.split() for line in done.stdout.splitlines()]
    return [float(words[1]) for words in steps], tuple(result)


def measure(options, name, ballast, memory):
    """Seconds a step, one a round, of plain PyTorch and of Spillway; and operators a step."""
    script = [sys.executable, os.path.abspath(__file__), "--train", name, "--steps", str(options.steps), "--ballast", str(ballast)]
    plain, limited, results, operators = [], [], set(), 1
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.json")
        command = [options.spillway, "run", "--quiet", "--device-memory", memory, "--json", path, "--", *script]
        for _ in range(options.rounds):
            seconds, result = run(script)
            plain.append(statistics.median(seconds[len(seconds) // 2:]))
            results.add(result)
            seconds, result = run(command)
            results.add(result)
            with open(path, encoding="utf-8") as file:
                iterations = json.load(file)["iterations"]
            assert not ballast or iterations[-1]["phase"] == "planned", iterations[-1]
            later = iterations[len(iterations) // 2:]
            waited = statistics.median(iteration["waited_seconds"] for iteration in later)
            limited.append(statistics.median(seconds[len(seconds) // 2:]) - waited)
            operators = max(iteration["operators"] for iteration in iterations)
    assert len(results) == 1, f"results differ: {results}"
    return plain, limited, operators


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spillway", nargs="?")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--train", choices=NETS, help=argparse.SUPPRESS)
    parser.add_argument("--ballast", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        return train(options.train, options.steps, options.ballast)
    if not options.spillway:
        parser.error("which spillway? build/spillway, for example")
    print(f"{'':<26}{'operators':>10}{'plain s':>10}{'spread':>8}{'spillway s':>12}{'spread':>8}{'ratio':>8}{'us an operator':>16}")
    for name in NETS:
        for way, ballast, memory in (("all fits", 0, "1GiB"), ("a plan is followed", 96, "64MiB")):
            plain, limited, operators = measure(options, name, ballast, memory)
            before, now = statistics.median(plain), statistics.median(limited)
            print(f"{name + ', ' + way:<26}{operators:>10}{before:>10.5f}{(max(plain) - min(plain)) / before:>8.0%}{now:>12.5f}"
                  f"{(max(limited) - min(limited)) / now:>8.0%}{now / before:>8.2f}{(now - before) / operators * 1e6:>16.2f}", flush=True)
    return 0


sys.exit(main())
