"""dispatch_log.py SCRIPT: runs a script under a TorchDispatchMode and logs what each operator does, as JSON on file LOG.

An account that shares nothing with the hook: operators below autograd, storages by weak references. Each entry has the
operator's name, whether it makes a view, the storages that its arguments lie in (with byte extents, and whether they are written: the schema says so,
or their contents are others afterwards), the storages that it made, and those that have died since the entry before. "step" entries mark the ends of steps.
"""

import json
import os
import runpy
import sys

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Log(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.entries = []
        self.alive = {}  # address of the storage's object -> (number, weak reference)
        self.count = 0

    def number(self, tensor):
        """The storage's number and whether it is new."""
        reference = StorageWeakRef(tensor.untyped_storage())
        known = self.alive.get(reference.cdata)
        if known is not None and not known[1].expired():
            return known[0], False
        self.count += 1
        self.alive[reference.cdata] = (self.count, reference)
        return self.count, True

    def deaths(self):
        dead = [(key, number) for key, (number, reference) in self.alive.items() if reference.expired()]
        for key, _ in dead:
            del self.alive[key]
        return [number for _, number in dead]

    def note_deaths(self):
        dead = self.deaths()
        if dead and self.entries:
            self.entries[-1].setdefault("dies", []).extend(dead)

    def step_ended(self, *_):
        self.note_deaths()
        self.entries.append({"step": True})

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        self.note_deaths()
        uses, copies = [], []
        arguments = [(a, args[i] if i < len(args) else kwargs.get(a.name)) for i, a in enumerate(function._schema.arguments)]
        for argument, value in arguments:
            writes = argument.alias_info is not None and argument.alias_info.is_write
            for tensor in tree_leaves(value):
                if not isinstance(tensor, torch.Tensor) or tensor.numel() == 0:
                    continue
                last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
                begin = tensor.storage_offset() * tensor.itemsize
                number, _ = self.number(tensor)
                uses.append([number, begin, begin + (last + 1) * tensor.itemsize, writes])
                copies.append((tensor, tensor.detach().clone()))
        result = function(*args, **kwargs)
        for use, (tensor, copy) in zip(uses, copies):
            use[3] = use[3] or not torch.equal(tensor.detach(), copy)
        makes = []
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor) and tensor.numel() > 0:
                number, new = self.number(tensor)
                if new:
                    makes.append([number, tensor.untyped_storage().nbytes()])
        entry = {"name": function._schema.name, "uses": uses, "makes": makes}
        returned = [value.alias_info for value in function._schema.returns]
        if returned and not makes and all(alias is not None and not alias.is_write for alias in returned):
            entry["view"] = True
        self.entries.append(entry)
        return result


def main():
    log = Log()
    register_optimizer_step_post_hook(log.step_ended)
    with log:
        runpy.run_path(sys.argv[1], run_name="__main__")
    with open(os.environ["LOG"], "w", encoding="utf-8") as file:
        json.dump(log.entries, file)


if __name__ == "__main__":
    main()
