"""What the scripts of this folder share: their options, and the loop that trains."""

import argparse
import contextlib
import functools
import hashlib
import importlib
import os
import sys
import time

import torch

from peak import Peak

HERE = os.path.dirname(os.path.abspath(__file__))

class FusedAdam(torch.optim.Optimizer):
    """Adam as one operator for each weight, whose gradient is freed right after: so do frameworks that compile graphs, TENSILE's among them. Adam(fused=True)
    of PyTorch refuses meta tensors."""

    def __init__(self, parameters, lr=1e-4):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                if not state:
                    state.update(mean=torch.zeros_like(weight), square=torch.zeros_like(weight), step=torch.ones((), device=weight.device))
                torch._fused_adam_([weight], [weight.grad], [state["mean"]], [state["square"]], [], [state["step"]], lr=group["lr"], beta1=0.9,
                                   beta2=0.999, weight_decay=0.0, eps=1e-8, amsgrad=False, maximize=False)
                state["step"] += 1
                weight.grad = None


# foreach would make another copy of all weights, and PyTorch has it only on GPUs: without it a run is the same everywhere.
OPTIMIZERS = {
    "sgd": functools.partial(torch.optim.SGD, lr=0.01, foreach=False),
    "momentum": functools.partial(torch.optim.SGD, lr=0.01, momentum=0.9, weight_decay=1e-4, foreach=False),
    "adam": functools.partial(torch.optim.Adam, lr=1e-4, foreach=False),
    "adamw": functools.partial(torch.optim.AdamW, lr=1e-4, foreach=False),
    "fused-adam": FusedAdam,
}


def library(name):
    """The module of this name, or the program ends and says what to install."""
    try:
        return importlib.import_module(name)
    except (ImportError, RuntimeError) as error:  # The second: a torchvision that is not for this PyTorch.
        sys.exit(f"cannot import {name}: {error}\nThis example needs it, in the versions of: pip install -r {os.path.join(HERE, 'requirements.txt')}")


def parser(description, batch, optimizer="adamw", what="texts"):
    """The options that all scripts have. An optimizer of None: the script chooses one where the user does not."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--batch", type=int, default=batch, help=f"{what} a step (default %(default)s)")
    options.add_argument("--steps", type=int, default=6, help="training steps (default %(default)s)")
    options.add_argument("--device", default="cpu", help="as PyTorch names it; weights and data are made there. On meta nothing is computed, "
                         "and no loss is printed (default %(default)s)")
    options.add_argument("--optimizer", choices=OPTIMIZERS, default=optimizer, help="sgd keeps no states, momentum one for each weight, the others two. fused-adam is one operator a weight "
                         f"(default {optimizer or 'that of the paper'})")
    options.add_argument("--seed", type=int, default=1, help="the same seed gives the same losses (default %(default)s)")
    options.add_argument("--peak", action="store_true", help="print the most bytes that tensors on the device had at a time, as operators return them")
    options.add_argument("--no-hash", action="store_true", help="do not read all weights at the end")
    return options


def attention_option(options):
    options.add_argument("--attention", choices=("eager", "sdpa"), default="eager", help="eager keeps each head's scores, as in the papers' time; sdpa does "
                         "not on most devices (default %(default)s)")


def causal_mask(length, device):
    """Hides from each word those after it. Left to itself, transformers would read values to find out whether there is anything else to hide."""
    return torch.full((1, 1, length, length), torch.finfo(torch.float32).min, device=device).triu(1)


def built(options, make):
    """The model that make() returns, made on the device; the first line of the output says how large it is."""
    torch.manual_seed(options.seed)
    torch.use_deterministic_algorithms(True, warn_only=True)  # Some operators of GPUs have no such form.
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.ones(1).sqrt()  # Where two threads are its first callers, MKL may take a coarse one in one of them (pytorch/pytorch#188792).
    with torch.device(options.device):
        model = make()
    print("parameters", sum(parameter.numel() for parameter in model.parameters()), flush=True)
    return model.train()


def train(options, model, loss_of):
    """Trains the model; loss_of() makes data on the device and returns their loss."""
    optimizer = OPTIMIZERS[options.optimizer](model.parameters())

    def step():
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        return loss

    repeat(options, model, step)


def repeat(options, model, step):
    """Calls step() as often as asked for, prints the losses that it returns, and at the end the hash of the weights."""
    peak = Peak(options.device, [*model.parameters(), *model.buffers()]) if options.peak else None
    with peak or contextlib.nullcontext():
        for number in range(options.steps):
            start = time.perf_counter()
            loss = step().detach()
            value = "" if loss.is_meta else f" loss {loss.item().hex()}"
            print(f"step {number}{value} seconds {time.perf_counter() - start:.4f}", flush=True)
    if peak:
        print("peak", peak.bytes, flush=True)
    if not options.no_hash and torch.device(options.device).type != "meta":
        print("weights", weights_hash(model), flush=True)


def weights_hash(model):
    digest = hashlib.sha256()
    for tensor in model.state_dict().values():
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
