#!/usr/bin/env python3
"""Reads and writes blocks of 2 MiB in a file of its own, as many bytes a second, until its standard input ends: what moves to and from a
disk cost what runs beside them, whoever asks for them.

  bench/transfers.py FOLDER IN OUT

Direct I/O from and to huge pages, one transfer each way at a time, nothing else. Prints "ready" when it begins."""

import ctypes
import fcntl
import mmap
import os
import sys
import tempfile
import threading
import time

BLOCK = 2 << 20
BLOCKS = 512  # of the file


def block():
    """On one huge page, with bytes that no disk could make less of."""
    memory = mmap.mmap(-1, 2 * BLOCK, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    begin = -ctypes.addressof(ctypes.c_char.from_buffer(memory)) % BLOCK
    view = memoryview(memory)[begin:begin + BLOCK]
    view[:] = os.urandom(BLOCK)
    return view


def transfer_for_ever(file, move, rate):
    memory, begin, count = block(), time.monotonic(), 0
    try:
        while rate > 0:
            time.sleep(max(0, begin + count * BLOCK / rate - time.monotonic()))
            move(file, [memory], count * 7 % BLOCKS * BLOCK)
            count += 1
    except OSError as error:
        print(error, file=sys.stderr)
        os._exit(1)


def main():
    folder, rates = sys.argv[1], [float(rate) for rate in sys.argv[2:4]]
    with tempfile.TemporaryFile(dir=folder) as unnamed:
        file = os.dup(unnamed.fileno())  # open as long as the threads run
    fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) | os.O_DIRECT)
    os.posix_fallocate(file, 0, BLOCKS * BLOCK)
    content = block()
    for number in range(BLOCKS):
        os.pwritev(file, [content], number * BLOCK)
    for move, rate in zip((os.preadv, os.pwritev), rates):
        threading.Thread(target=transfer_for_ever, args=(file, move, rate), daemon=True).start()
    print("ready", flush=True)
    sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
