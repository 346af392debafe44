"""A device "strict" of PyTorch, without a GPU: see docs/gpu.md.

    SPILLWAY_CUDA_DRIVER=libstrict_cuda.so python3 strict_device.py libstrict_device.so SCRIPT ...     runs the script, which may use it
"""

import atexit
import contextlib
import os
import runpy
import sys
import types

import torch


def _module():
    calls = torch.ops.strict_device
    module = types.ModuleType("torch.strict")

    def device(_):
        return contextlib.nullcontext()

    def stream(stream):
        return stream if stream is not None else contextlib.nullcontext()

    members = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "_initialized": True,
        "is_bf16_supported": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda _: None,
        "device": device,
        "synchronize": lambda _=None: torch.accelerator.synchronize(),
        "Stream": lambda: torch.Stream(device="strict"),
        "Event": lambda: torch.Event(device="strict"),
        "stream": stream,
        "current_stream": lambda _=None: torch.accelerator.current_stream(),
        "set_stream": torch.accelerator.set_stream,
        "_is_in_bad_fork": lambda: False,
        "manual_seed": calls.seed,
        "manual_seed_all": calls.seed,
        "get_rng_state": lambda _=None: calls.random_state(),
        "set_rng_state": lambda state, _=None: calls.set_random_state(state),
        "get_amp_supported_dtype": lambda: [torch.bfloat16, torch.float16],
        "memory_allocated": lambda _=None: calls.allocated_bytes(),
        "max_memory_allocated": lambda _=None: calls.most_allocated_bytes(),
        "reset_peak_memory_stats": lambda _=None: calls.forget_most_allocated(),
        "empty_cache": lambda: None,
    }
    for name, member in members.items():
        setattr(module, name, member)
    return module


def _keep_parameters_that_move():
    """Parameters stay the same objects when they move here, as on a GPU: two modules may share one."""
    move = torch.nn.Module._apply
    future = torch.__future__

    def move_and_keep(module, *arguments, **options):
        before = future.get_swap_module_params_on_conversion()
        future.set_swap_module_params_on_conversion(True)
        try:
            return move(module, *arguments, **options)
        finally:
            future.set_swap_module_params_on_conversion(before)

    torch.nn.Module._apply = move_and_keep


def load(library):
    os.environ.setdefault("STRICT_CUDA_DEVICE_BYTES", str(64 << 30))
    torch.ops.load_library(library)
    torch.utils.rename_privateuse1_backend("strict")
    module = _module()
    torch._register_device_module("strict", module)
    sys.modules["torch.strict"] = module
    torch.utils.generate_methods_for_privateuse1_backend()
    _keep_parameters_that_move()
    # Kernels run beside the script. So they give what one thread gives, whoever is first.
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    torch.ones(1).sqrt()  # Where two threads are its first callers, MKL may take a coarse one in one of them (pytorch/pytorch#188792).
    atexit.register(module.synchronize)


if __name__ == "__main__":
    _, library, *sys.argv = sys.argv
    load(library)
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
