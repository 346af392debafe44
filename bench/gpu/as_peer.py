#!/usr/bin/env python3
"""as_peer.py plain|save_on_cpu|fsdp2 SCRIPT ...: runs an example as others train what does not fit, and prints the most memory that PyTorch
took of the device.

    plain         as it is
    save_on_cpu   torch.autograd.graph.save_on_cpu: what the backward pass needs waits in host memory
    fsdp2         torch.distributed.fsdp.fully_shard of each layer, by one process, with CPUOffloadPolicy: weights, gradients and
                  optimizer stay in host memory, and the optimizer steps there
"""

import contextlib
import os
import runpy
import sys
import tempfile

import torch

LAYERS = ("Block", "Bottleneck")  # as the examples call them


def fully_sharded(model, device):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard
    kind = torch.device(device).type
    options = {"mesh": init_device_mesh(kind, (1,)), "offload_policy": CPUOffloadPolicy(pin_memory=kind == "cuda")}
    for module in [module for module in model.modules() if type(module).__name__ in LAYERS]:
        fully_shard(module, **options)
    fully_shard(model, **options)
    of_this_rank = lambda tensor: tensor.to_local() if hasattr(tensor, "to_local") else tensor  # It is the only one.
    model.state_dict = lambda: {name: of_this_rank(tensor) for name, tensor in type(model).state_dict(model).items()}
    return model


@contextlib.contextmanager
def fsdp2():
    """The examples call `to(device)` on their model, once, and then make its optimizer: AdamW, where there is one."""
    from torch import distributed
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder:
        distributed.init_process_group(backend, init_method=f"file://{folder}/meeting", rank=0, world_size=1)
        torch.nn.Module.to = fully_sharded
        adamw = torch.optim.AdamW
        torch.optim.AdamW = lambda parameters, foreach=None, **options: adamw(parameters, fused=True, **options)  # the fastest of a CPU
        try:
            yield
        finally:
            distributed.destroy_process_group()


def save_on_cpu():
    return torch.autograd.graph.save_on_cpu(pin_memory=torch.cuda.is_available())


WAYS = {"plain": contextlib.nullcontext, "save_on_cpu": save_on_cpu, "fsdp2": fsdp2}


def main():
    _, way, *sys.argv = sys.argv
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    with WAYS[way]():
        runpy.run_path(sys.argv[0], run_name="__main__")
    device = getattr(torch, torch.device(sys.argv[sys.argv.index("--device") + 1]).type)
    most = getattr(device, "max_memory_reserved", getattr(device, "max_memory_allocated", None))
    if most:
        print("peak", most(), flush=True)


if __name__ == "__main__":
    main()
