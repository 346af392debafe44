"""Makes the first tensor when a fork has begun. Its child is as before the tensor, and makes its own later."""

import ctypes
import os
import signal
import threading
import time

import torch

torch.empty(1, device="meta")  # What PyTorch makes once and without a tensor's memory is there for the child.
is_made, was_made = os.pipe()
go = threading.Event()
first = threading.Thread(target=lambda: (go.wait(), torch.empty(1024)))
first.start()  # Python may not start it within a fork.


@ctypes.CFUNCTYPE(None)
def before_fork():
    go.set()
    while "/memfd:spillway-session" not in open("/proc/self/maps").read():  # until the thread is in the allocator
        time.sleep(0)


ctypes.CDLL(None).__register_atfork(before_fork, None, None, None)
child = os.fork()
if child == 0:
    signal.alarm(60)  # One that hangs would outlive the test.
    os.close(was_made)
    os.read(is_made, 1)
    torch.ones(10)
    os._exit(0)
first.join()
os.close(was_made)
print(os.waitpid(child, 0)[1], torch.ones(3).sum().item())
