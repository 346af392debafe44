"""full_disk.py SPILLWAY: PyTorch scripts that spill to a small file system which is full, or fills up."""

import ctypes
import os
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

from cases import MIB, check, file_system, main, normal, run, script, skip


@normal()
def a_disk_that_is_full_is_an_error_before_or_pytorchs_error_during_the_run(spillway):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        disk = os.path.join(folder, "disk")
        os.mkdir(disk)

        def mounted(number, then="true"):
            """What starts a program with a small file system of its own on `disk`, which is gone some time after it: so each
            has another image."""
            image = os.path.join(folder, f"image{number}")
            file_system(image, 112 * MIB)
            return ["unshare", "-m", "sh", "-c", f'mount -o loop "$0" "$1" && {then} && shift && exec "$@"', image, disk]

        if subprocess.run([*mounted(0), "true"], capture_output=True).returncode != 0:
            skip("this user may not mount a file system")
        done, report = run(spillway, script("fills_memory.py"), "--ssd", disk, before=mounted(1))
        check(done.returncode == 0 and f"in {disk}" in done.stdout and "then 12582912.0" in done.stdout, done.stdout, done.stderr)
        check(48 * MIB < report["peak_ssd_bytes"] < 112 * MIB, report)
        late = script("fills_memory.py", os.path.join(disk, "file"))
        done, report = run(spillway, late, "--ssd", disk, before=mounted(2))
        check(done.returncode == 0 and "No space left" in done.stdout and "then 12582912.0" in done.stdout, done.stdout, done.stderr)
        check(report["peak_ssd_bytes"] < 64 * MIB, report)
        left = int(re.search(r"left on the disk: (\d+) MiB", done.stdout).group(1))
        check(left > 0, "what could not be had as a whole was not given back:", done.stdout)
        fill = 'head -c 200M /dev/zero >"$1/file" 2>/dev/null; true'
        done, report = run(spillway, script("fills_memory.py"), "--ssd", disk, before=mounted(3, fill))
        check(done.returncode == 1 and report is None and not done.stdout, done.returncode, done.stdout)
        check(f"cannot spill to {disk}" in done.stderr and "free some space" in done.stderr, done.stderr)


def leave_holes(path, size):
    """A file that takes half of this, in pieces of 16 KiB, so that what is free is in such pieces, too: they take a while to free."""
    libc, piece = ctypes.CDLL(None, use_errno=True), 16 << 10
    with open(path, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)
        for at in range(0, size, 2 * piece):
            punch_hole_and_keep_size = 3
            if libc.fallocate(file.fileno(), punch_hole_and_keep_size, ctypes.c_long(at), ctypes.c_long(piece)) != 0:
                raise OSError(ctypes.get_errno(), "fallocate")


@normal()
def two_runs_share_a_small_disk_and_give_it_back_at_their_ends(spillway):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        image, disk, mine, other = (os.path.join(folder, name) for name in ("image", "disk", "mine", "other"))
        os.mkdir(disk)
        os.mkfifo(mine)
        os.mkfifo(other)
        file_system(image, 320 * MIB)
        if subprocess.run(["mount", "-o", "loop", image, disk], capture_output=True).returncode != 0:
            skip("this user may not mount a file system")
        try:
            budget = 32 * len(os.sched_getaffinity(0))
            # Each spills 96 MiB, and has 32 for moves: both have room, if none takes more than it needs.
            with ThreadPoolExecutor() as pool:
                runs = [pool.submit(run, spillway, script("holds_memory.py", str(budget + 96), *files), "--ssd", disk)
                        for files in ((mine, other), (other, mine))]
            for done, report in (each.result() for each in runs):
                check(done.returncode == 0 and "all" in done.stdout, done.stdout, done.stderr)
                check(report["peak_ssd_bytes"] >= 90 * MIB, report)
            leave_holes(os.path.join(disk, "holes"), 240 * MIB)
            free = os.statvfs(disk).f_bfree
            for end in ("plainly", "kill", "os._exit"):
                _, report = run(spillway, script("ends.py", end), "--ssd", disk, "--policy", "uvm")
                check(report["moved_bytes"]["device_to_ssd"] > 90 * MIB, end, report)
                check(os.statvfs(disk).f_bfree == free, end, free, os.statvfs(disk))
        finally:
            unmounted = subprocess.run(["umount", disk], capture_output=True, text=True)
            if unmounted.returncode != 0:
                subprocess.run(["umount", "--lazy", disk], check=True)
        check(unmounted.returncode == 0, unmounted.stderr)


main()
