"""stopped_disk.py SPILLWAY: a file system that answers no more (it is frozen, as a hung disk's would be) ends the run within
--io-timeout, with a word about what was waited for."""

import contextlib
import fcntl
import os
import subprocess
import sys
import tempfile

from cases import MIB, check, file_system, least_memory, long, main, normal, script, skip

FIFREEZE, FITHAW = 0xC0045877, 0xC0045878
ENOUGH = 120  # seconds


@contextlib.contextmanager
def a_disk():
    """A file system of its own, in a folder; nobody uses it at the end."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        image, disk = os.path.join(folder, "image"), os.path.join(folder, "disk")
        os.mkdir(disk)
        file_system(image, 1024 * MIB)
        if subprocess.run(["mount", "-o", "loop", image, disk], capture_output=True).returncode != 0:
            skip("this user may not mount a file system")
        try:
            yield disk
        finally:
            subprocess.run(["umount", "--lazy", disk], check=True)  # The kernel may still be tidying up.


@contextlib.contextmanager
def frozen(disk):
    root = os.open(disk, os.O_RDONLY)
    fcntl.ioctl(root, FIFREEZE, 0)
    try:
        yield
    finally:
        fcntl.ioctl(root, FITHAW, 0)
        os.close(root)


def start(spillway, disk, name):
    """A run of that script; what it says goes into a file, since its threads that wait for the disk would keep a pipe open."""
    command = [spillway, "run", "--device-memory", least_memory(), "--ssd", disk, "--io-timeout", "2s",
               "--", *script(name)]
    with open(f"{disk}.errors", "w", encoding="utf-8") as errors:
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)


def what_it_said(process, disk):
    check(process.returncode == 1, process.returncode)
    with open(f"{disk}.errors", encoding="utf-8") as errors:
        said = errors.read()
    check(said.startswith(f"spillway: error: {disk} has not answered ") and "--io-timeout" in said, said)
    return said


def ends_when_it_is_frozen(spillway, name):
    """The script has printed something before."""
    with a_disk() as disk:
        process = start(spillway, disk, name)
        check(process.stdout.readline(), "nothing was printed")
        with frozen(disk):
            process.stdin.close()  # Who waits for a word goes on.
            try:
                process.wait(timeout=ENOUGH)
            finally:
                process.kill()
        process.stdout.read()  # By its end nobody uses the disk any more.
        return what_it_said(process, disk)


@normal()
def a_disk_that_stops_answering_ends_the_run_with_a_word(spillway):
    said = ends_when_it_is_frozen(spillway, "sweeps_for_ever.py")
    check(" of a block for " in said, said)
    check("could not be ended: " in said, said)  # What waits in the kernel ends with the disk's answer.


@long()
def so_does_one_that_gives_no_space_any_more(spillway):
    said = ends_when_it_is_frozen(spillway, "grows_for_ever.py")
    check("asked for space" in said, said)


@long()
def one_that_does_not_answer_from_the_beginning_on_lets_no_script_start(spillway):
    with a_disk() as disk:
        with frozen(disk):
            process = start(spillway, disk, "sweeps_for_ever.py")
            try:
                process.wait(timeout=ENOUGH)
            finally:
                process.kill()
        check(process.stdout.read() == b"", "the script ran")
        said = what_it_said(process, disk)
        check("on trial" in said, said)


def what_became_of(command, disk):
    """Its status and what it said when the disk froze after it had printed something."""
    with open(f"{disk}.errors", "w", encoding="utf-8") as errors:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
    check(process.stdout.readline() == b"up\n")
    with frozen(disk):
        process.stdin.close()
        try:
            process.wait(timeout=ENOUGH)
        finally:
            process.kill()
    with open(f"{disk}.errors", encoding="utf-8") as errors:
        return process.returncode, errors.read()


@long()
def one_that_only_the_report_is_for_is_waited_for_no_longer(spillway):
    with a_disk() as disk:
        report = os.path.join(disk, "report.json")
        status, said = what_became_of([spillway, "run", "--device-memory", "1GiB", "--io-timeout", "2s", "--json", report, "--",
                                       "sh", "-c", "echo up; read line; exit 3"], disk)
        check(status == 3 and f"spillway: error: {report} has not answered for 5 s" in said, status, said)


@long()
def nor_is_one_that_only_the_record_is_for(spillway):
    with a_disk() as disk:
        folder = os.path.join(disk, "record")
        status, said = what_became_of([spillway, "run", "--device-memory", "1GiB", "--io-timeout", "2s", "--record", folder, "--",
                                       sys.executable, "-c", "import torch; torch.ones(1 << 20); print('up', flush=True); input()"], disk)
        check(status == 1 and f"spillway: error: {folder}/run.journal has not been taken" in said, status, said)


@long()
def one_that_something_is_to_be_written_to_must_answer_before_the_script_starts(spillway):
    for option, name in (("--json", "report.json"), ("--record", "record")):
        with a_disk() as disk:
            path = os.path.join(disk, name)
            with frozen(disk):
                done = subprocess.run([spillway, "run", "--device-memory", "1GiB", "--io-timeout", "2s", option, path, "--", "echo", "up"],
                                      capture_output=True, text=True, timeout=ENOUGH)
            check(done.returncode == 1 and done.stdout == "", option, done.returncode, done.stdout)
            check(f"{path} has not answered for 5 s" in done.stderr and option in done.stderr, done.stderr)


@long()
def the_status_is_the_same_when_nobody_reads_the_word(spillway):
    with a_disk() as disk:
        command = [spillway, "run", "--device-memory", least_memory(), "--ssd", disk, "--io-timeout", "2s",
                   "--", *script("sweeps_for_ever.py")]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        check(process.stdout.readline(), "nothing was printed")
        process.stderr.close()
        with frozen(disk):
            try:
                process.wait(timeout=ENOUGH)
            finally:
                process.kill()
        process.stdout.read()
        check(process.returncode == 1, process.returncode)


if "--list" not in sys.argv and "--in-its-own-mounts" not in sys.argv:  # A mount that nobody else sees goes with its last process.
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        skip("this user may not mount a file system")
    sys.exit(subprocess.run(["unshare", "-m", sys.executable, *sys.argv, "--in-its-own-mounts"], check=False).returncode)
sys.argv = [argument for argument in sys.argv if argument != "--in-its-own-mounts"]
main()
