#!/usr/bin/env python3
"""The allocator of a GPU takes its place in a process with PyTorch: python3 cuda_allocator_test.py ALLOCATOR ASKED

Both are libraries. There need be no GPU: nothing is allocated.
"""
import ctypes
import os
import sys

import torch

allocator, asked = (ctypes.CDLL(path, os.RTLD_NOW | os.RTLD_LOCAL) for path in sys.argv[1:])
for function in asked.fake_device_tensors, asked.allocator_of_torch, asked.allocator_of_accelerator:
    function.restype = ctypes.c_void_p
for function in asked.is_enabled, asked.says_when_shared, asked.refuses_unknown_memory:
    function.restype = ctypes.c_bool

before = asked.allocator_of_torch()
name = torch._C._cuda_getAllocatorBackend()
assert asked.allocator_of_accelerator() == before
assert asked.is_enabled()

allocator.spillway_torch_cuda_install(ctypes.c_void_p(asked.fake_device_tensors()))
ours = asked.allocator_of_torch()
assert ours != before, "PyTorch has the allocator that it had"
assert asked.allocator_of_accelerator() == ours, "torch.accelerator asks another allocator"
assert torch._C._cuda_getAllocatorBackend() == name, "scripts do not know this name"
assert asked.says_when_shared(b"run the script without spillway")
assert asked.refuses_unknown_memory()
print("the allocator took its place")
