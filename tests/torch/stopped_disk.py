"""stopped_disk.py SPILLWAY: a file system that answers no more (it is frozen, as a hung disk's would be) ends the run within
--io-timeout, with a word about what was waited for."""

import fcntl
import os
import subprocess
import sys
import tempfile

from limited_runs import MIB, check, run_all, script, skip

FIFREEZE, FITHAW = 0xC0045877, 0xC0045878
ENOUGH = 120  # seconds


def a_disk_that_stops_answering_ends_the_run_with_a_word(spillway):
    if "--in-its-own-mounts" not in sys.argv:  # A mount that nobody else sees goes with its last process.
        if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
            skip("this user may not mount a file system")
        inner = subprocess.run(["unshare", "-m", sys.executable, __file__, spillway, "--in-its-own-mounts"], check=False)
        if inner.returncode == 77:
            sys.exit(77)
        check(inner.returncode == 0, inner.returncode)
        return
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        image, disk = os.path.join(folder, "image"), os.path.join(folder, "disk")
        os.mkdir(disk)
        with open(image, "wb") as file:
            file.truncate(1024 * MIB)
        subprocess.run(["/sbin/mkfs.ext4", "-q", "-m", "0", image], check=True)
        if subprocess.run(["mount", "-o", "loop", image, disk], capture_output=True).returncode != 0:
            skip("this user may not mount a file system")
        command = [spillway, "run", "--device-memory", f"{32 * len(os.sched_getaffinity(0))}MiB", "--ssd", disk, "--io-timeout", "2s",
                   "--", *script("sweeps_for_ever.py")]
        path = os.path.join(folder, "errors")  # No pipe: threads of the script that wait for the disk keep it open.
        with open(path, "w", encoding="utf-8") as errors:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
        check(process.stdout.readline(), "nothing was printed")
        root = os.open(disk, os.O_RDONLY)
        fcntl.ioctl(root, FIFREEZE, 0)
        try:
            process.wait(timeout=ENOUGH)
        finally:
            process.kill()
            fcntl.ioctl(root, FITHAW, 0)
            os.close(root)
            process.stdout.read()  # By its end nobody uses the disk any more.
            subprocess.run(["umount", "--lazy", disk], check=True)  # The kernel may still be tidying up.
        with open(path, encoding="utf-8") as errors:
            said = errors.read()
        check(process.returncode == 1, process.returncode, said)
        check(said.startswith(f"spillway: error: {disk} has not answered a ") and "--io-timeout" in said, said)
        check("could not be ended: " in said, said)  # What waits in the kernel ends with the disk's answer.


if __name__ == "__main__":
    run_all(a_disk_that_stops_answering_ends_the_run_with_a_word)
