#!/usr/bin/env python3
"""Makes random programs of tensors and operators: many sizes, views, in-place operators, frees, copies to the host and back, several
streams. Prints what each computed. Spillway must not change that:

    random_programs.py --device cuda --write FILE                               what they compute with all the memory
    spillway run --device-memory 256MiB -- random_programs.py ... --compare FILE    and with less

Exit status 1: a program computed something else. `--first 17 --programs 1` makes that one again."""

import argparse
import contextlib
import hashlib
import itertools
import random
import sys

import numpy as np
import torch

STREAMS = 3
KINDS = (torch.float32, torch.float32, torch.float32, torch.bfloat16, torch.int64)


def digest_of(tensor):
    """Of sums of rows of 4 KiB: much quicker than hashing all bytes. Wrong bytes change it, and so do right ones in a wrong place."""
    array = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy()
    words = array[: array.size // 8 * 8].view(np.uint64)
    rows = words[: words.size // 512 * 512].reshape(-1, 512)
    digest = hashlib.sha256(np.add.reduce(rows, axis=1).tobytes())
    digest.update(array[rows.nbytes:].tobytes())
    return digest.hexdigest()


class Held:
    """A tensor that the program holds, and when what was last enqueued on its memory will have ended."""

    def __init__(self, tensor, used=None):
        self.tensor, self.used = tensor, used  # used: stream, event


class Program:
    def __init__(self, seed, device, memory):
        self.random = random.Random(seed)
        self.device = torch.device(device)
        # Half of the programs are small, the others need up to three times the memory. One launch must fit.
        self.most = int(2 ** self.random.uniform(16, 24) if seed % 2 else memory * self.random.uniform(0.5, 3))
        self.largest = min(self.most // 4, memory // 6)
        self.held = []
        self.streams = [None] * STREAMS  # So that a program is the same on all devices.
        if self.device.type != "cpu":
            self.streams = [torch.Stream(device=self.device) for _ in range(STREAMS)]

    @contextlib.contextmanager
    def on_a_stream(self, *operands):
        """What is enqueued here comes after all that was enqueued on the operands, wherever."""
        stream = self.random.choice(self.streams)
        if stream is None:
            yield lambda tensor: self.held.append(Held(tensor))
            return
        for operand in operands:
            if operand.used and operand.used[0] != stream:
                stream.wait_event(operand.used[1])
        made = []
        with stream:
            yield made.append
            event = stream.record_event()
        for operand in operands:
            operand.tensor.record_stream(stream)
            operand.used = (stream, event)
        self.held += [Held(tensor, (stream, event)) for tensor in made]

    def any(self):
        return self.random.choice(self.held)

    def bytes(self):
        return sum(held.tensor.nbytes for held in self.held)

    # --- What a program may do

    def make(self):
        kind = self.random.choice(KINDS)
        size = self.random.uniform(0.3, 1) * self.largest if self.random.random() < 0.8 else 2 ** self.random.uniform(8, np.log2(self.largest))
        count = max(4, int(size) // 8)  # Nothing that is made of it on the way may be larger.
        columns = self.random.choice((1, 4, 64, 256))
        shape = (max(1, count // columns), min(count, columns))
        with self.on_a_stream() as keep:
            if self.random.random() < 0.5:
                keep(torch.full(shape, self.random.randrange(1, 9), dtype=kind, device=self.device))
            else:
                numbers = torch.arange(shape[0] * shape[1], device=self.device).view(shape)
                keep((numbers % self.random.randrange(2, 1000)).to(kind))

    def change(self):
        """In place, all of it or a view."""
        one = self.any()
        with self.on_a_stream(one):
            view = self.view_of(one.tensor)
            if view.dtype == torch.int64:
                view.mul_(3).add_(self.random.randrange(100)).remainder_(10007)
            else:
                view.mul_(0.5).add_(self.random.randrange(100)).sin_()

    def view_of(self, tensor):
        rows, columns = tensor.shape
        way = self.random.randrange(4)
        if way == 0:
            start = self.random.randrange(rows)
            return tensor.narrow(0, start, self.random.randrange(1, rows - start + 1))
        if way == 1:
            return tensor.t()
        if way == 2:
            return tensor[:: self.random.randrange(1, 4), self.random.randrange(columns):]
        return tensor.view(-1)

    def combine(self):
        one, other = self.any(), self.any()
        with self.on_a_stream(one, other) as keep:
            a, b = one.tensor, other.tensor
            rows, columns = min(a.shape[0], b.shape[0]), min(a.shape[1], b.shape[1])
            keep(torch.maximum(a[:rows, :columns], b[-rows:, -columns:].to(a.dtype)))

    def copy_into(self):
        one, other = self.any(), self.any()
        if one is other:
            return
        with self.on_a_stream(one, other):
            rows = min(one.tensor.shape[0], other.tensor.shape[0])
            columns = min(one.tensor.shape[1], other.tensor.shape[1])
            one.tensor[:rows, -columns:].copy_(other.tensor[-rows:, :columns])

    def multiply(self):
        one = self.any()
        with self.on_a_stream(one) as keep:
            a = one.tensor[:2048, :512].float()
            keep((a.t() @ a).sin_())

    def rearrange(self):
        one = self.any()
        if one.tensor.nbytes > self.largest:
            return
        with self.on_a_stream(one) as keep:
            tensor, way = one.tensor, self.random.randrange(5)
            if way == 0:
                keep(torch.cat([tensor[len(tensor) // 2:], tensor[: len(tensor) // 2]]))
            elif way == 1:
                keep(tensor.flip(0))
            elif way == 2:
                keep(tensor.t().clone(memory_format=torch.contiguous_format))
            elif way == 3:
                keep(tensor[torch.arange(len(tensor) - 1, -1, -1, device=self.device)[::2]])
            else:
                keep(tensor.sum(dim=self.random.randrange(2), keepdim=True).to(tensor.dtype))

    def by_the_host(self):
        one = self.any()
        with self.on_a_stream(one) as keep:
            there = one.tensor.to("cpu", copy=True)
            if self.device.type == "cuda":
                there = there.pin_memory()
            keep(there.to(self.device, non_blocking=True))

    def free(self):
        self.held.pop(self.random.randrange(len(self.held)))

    def step(self):
        while len(self.held) > 40 or self.bytes() > self.most:
            self.free()
        if len(self.held) < 3 or self.random.random() > self.bytes() / self.most + 0.4:
            return self.make()
        ways = (self.make, self.change, self.change, self.combine, self.copy_into, self.multiply, self.rearrange, self.by_the_host, self.free)
        self.random.choice(ways)()

    def run(self, steps):
        for _ in range(steps):
            self.step()
        if self.device.type != "cpu":
            torch.accelerator.synchronize()
        return hashlib.sha256("".join(digest_of(held.tensor) for held in self.held).encode()).hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="as PyTorch names it (default %(default)s)")
    parser.add_argument("--programs", type=int, default=1000, help="(default %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the first one's seed (default %(default)s)")
    parser.add_argument("--steps", type=int, default=60, help="operators of a program, about (default %(default)s)")
    parser.add_argument("--memory", type=int, default=256, help="MiB, which the largest programs use three times (default %(default)s)")
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--write", metavar="FILE", help="one line for each program")
    way.add_argument("--compare", metavar="FILE", help="what --write wrote")
    options = parser.parse_args()

    torch.use_deterministic_algorithms(True)
    expected = []
    if options.compare:
        with open(options.compare, encoding="ascii") as file:
            expected = file.read().split()
    computed, different = [], []
    for number, before in itertools.zip_longest(range(options.programs), expected[: options.programs]):
        seed = options.first + number
        computed.append(Program(seed, options.device, options.memory << 20).run(options.steps))
        if options.compare and computed[-1] != before:
            different.append(seed)
            print("different:", seed, flush=True)
    if options.write:
        with open(options.write, "w", encoding="ascii") as file:
            file.write("\n".join(computed) + "\n")
    print(f"programs {len(computed)} different {len(different)} all {hashlib.sha256(''.join(computed).encode()).hexdigest()}", flush=True)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
