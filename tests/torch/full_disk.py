"""full_disk.py SPILLWAY: PyTorch scripts that spill to a small file system which is full, or fills up."""

import os
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

from limited_runs import MIB, check, run, run_all, script, skip


def a_disk_that_is_full_is_an_error_before_or_pytorchs_error_during_the_run(spillway):
    if not os.path.exists("/sbin/mkfs.ext4"):
        skip("there is no /sbin/mkfs.ext4")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        disk = os.path.join(folder, "disk")
        os.mkdir(disk)

        def mounted(number, then="true"):
            """What starts a program with a small file system of its own on `disk`, which is gone some time after it: so each
            has another image."""
            image = os.path.join(folder, f"image{number}")
            with open(image, "wb") as file:
                file.truncate(112 * MIB)
            subprocess.run(["/sbin/mkfs.ext4", "-q", "-m", "0", image], check=True)
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


def two_runs_share_a_small_disk_and_give_it_back_at_their_ends(spillway):
    if not os.path.exists("/sbin/mkfs.ext4"):
        skip("there is no /sbin/mkfs.ext4")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        image, disk, mine, other = (os.path.join(folder, name) for name in ("image", "disk", "mine", "other"))
        os.mkdir(disk)
        with open(image, "wb") as file:
            file.truncate(320 * MIB)
        subprocess.run(["/sbin/mkfs.ext4", "-q", "-m", "0", image], check=True)
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
            for end in ("plainly", "kill", "os._exit"):
                run(spillway, script("ends.py", end), "--ssd", disk)
                taken = os.statvfs(disk)
                check((taken.f_blocks - taken.f_bfree) * taken.f_frsize < 4 * MIB, end, taken)
        finally:
            unmounted = subprocess.run(["umount", disk], capture_output=True, text=True)
            if unmounted.returncode != 0:
                subprocess.run(["umount", "--lazy", disk], check=True)
        check(unmounted.returncode == 0, unmounted.stderr)


run_all(
    a_disk_that_is_full_is_an_error_before_or_pytorchs_error_during_the_run,
    two_runs_share_a_small_disk_and_give_it_back_at_their_ends,
)
