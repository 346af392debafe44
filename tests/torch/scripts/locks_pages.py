"""Calls on a tensor's pages what would keep them from being moved, goes on whatever comes of it, and says which calls failed."""
import ctypes
import errno
import mmap

import torch

MIB = 1 << 20
libc = ctypes.CDLL(None, use_errno=True)
for name in ("mremap", "mmap"):
    getattr(libc, name).restype = ctypes.c_void_p

tensors = [torch.full((4 * MIB,), float(i)) for i in range(14)]  # 16 MiB each
failed = []
for i, (name, *rest) in enumerate((("mlock",), ("mlock2", 0), ("mprotect", 1), ("mprotect", 7), ("mremap", 8 * MIB, 1),
                                   ("madvise", 11), ("madvise", 12), ("madvise", 15), ("madvise", 17), ("madvise", 18), ("munmap",),
                                   ("pkey_mprotect", 1, -1))):
    begin = tensors[i].data_ptr() & ~4095
    result = getattr(libc, name)(ctypes.c_void_p(begin), ctypes.c_size_t(2 * MIB), *map(ctypes.c_size_t, rest))
    if result in (-1, ctypes.c_void_p(-1).value):
        failed.append(f"{name} {errno.errorcode[ctypes.get_errno()]}")
if libc.mlockall(1) == -1:
    failed.append(f"mlockall {errno.errorcode[ctypes.get_errno()]}")
# What changes nothing or is a hint, and what is not a tensor's, goes on as always.
begin = ctypes.c_void_p(tensors[0].data_ptr() & ~4095)
assert libc.mprotect(begin, ctypes.c_size_t(4096), 3) == 0
for advice in (1, 2, 14):
    assert libc.madvise(begin, ctypes.c_size_t(4096), advice) == 0
for advice in range(5):
    assert libc.posix_madvise(begin, ctypes.c_size_t(4096), advice) == 0
own = libc.mmap(None, ctypes.c_size_t(MIB), 3, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
assert libc.mlock(ctypes.c_void_p(own), ctypes.c_size_t(MIB)) == 0
assert libc.mprotect(ctypes.c_void_p(own), ctypes.c_size_t(MIB), 1) == 0
own = libc.mremap(ctypes.c_void_p(own), ctypes.c_size_t(MIB), ctypes.c_size_t(2 * MIB), 1)
assert own != ctypes.c_void_p(-1).value and libc.munmap(ctypes.c_void_p(own), ctypes.c_size_t(2 * MIB)) == 0
assert all((tensor == i).all() for i, tensor in enumerate(tensors))
print("failed:", ", ".join(failed))
