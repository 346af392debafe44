"""Forks while another thread makes the first tensor, and Spillway starts for it: again and again, or ("once") so that
the fork has begun just before. The children make theirs after it: the first one's process is the one that is managed.
"""

import ctypes
import os
import signal
import sys
import threading
import time

import torch

A_MINUTE = 60
signal.alarm(A_MINUTE)  # What hangs would outlive the test.
torch.empty(1, device="meta")  # What PyTorch makes once and without a tensor's memory is there for the children.
is_made, was_made = os.pipe()
go = threading.Event()
first = threading.Thread(target=lambda: (go.wait(), torch.empty(1024)))
first.start()  # Python may not start it within a fork.


def fork_a_child():
    child = os.fork()
    if child == 0:
        signal.alarm(A_MINUTE)
        os.close(was_made)
        os.read(is_made, 1)
        torch.ones(10)
        os._exit(0)
    return child


@ctypes.CFUNCTYPE(None)
def let_the_thread_start():
    go.set()
    while "/memfd:spillway-session" not in open("/proc/self/maps").read():  # until it is in the allocator
        time.sleep(0)


is_once = sys.argv[1:] == ["once"]
if is_once:
    ctypes.CDLL(None).__register_atfork(let_the_thread_start, None, None, None)
else:
    go.set()
children = [fork_a_child()]
while first.is_alive() and not is_once:
    children.append(fork_a_child())
first.join()
os.close(was_made)
print(sum(os.waitpid(child, 0)[1] for child in children), torch.ones(3).sum().item())
