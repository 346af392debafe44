"""limited_runs.py SPILLWAY: PyTorch scripts with a quarter of the memory that they use do what they do with all of it, and
however they end, the report says how."""

import os
import subprocess
import sys
import tempfile

from cases import MIB, SCRIPTS, check, long, main, normal, quick, read_json, run, script


@quick(cpus=2)
@normal("--eviction-path", "copy", cpus=2)
@normal("--host-memory", "64MiB")
def results_do_not_depend_on_the_memory(spillway, *options):
    command = script("larger_than_memory.py")
    expected = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    done, report = run(spillway, command, *options)
    check(done.returncode == 0 and done.stdout == expected, done.stdout, expected, done.stderr)
    check(report["faults"] > 100 and report["moved_bytes"]["ssd_to_device"] > 100 * MIB, report)
    check(report["peak_device_bytes"] <= report["device_budget_bytes"], report)
    check((report["plan"] is None) == (report["no_plan_because"] is not None), report["plan"], report["no_plan_because"])


@normal()
def what_uses_more_than_the_memory_is_named(spillway):
    """Also where the operator makes most of it inside: einsum copies both sides."""
    for rows, named in ((16, False), (96, True)):
        code = f"import torch; x = torch.ones({rows}, 4, 32768); print(float(torch.einsum('aof,bof->ab', x, x).sum()))"
        done, report = run(spillway, [sys.executable, "-c", code])
        check(done.returncode == 0 and done.stdout == f"{float(rows * rows * 4 * 32768)}\n", done.stdout, done.stderr)
        check(("aten::einsum used " in done.stderr) == named, rows, done.stderr)
        check("was running when the script ended" not in done.stderr, done.stderr)


@normal()
def what_uses_more_than_the_memory_is_named_while_it_runs(spillway):
    code = """
import os, torch
@torch.library.custom_op("tests::ends", mutates_args=())
def ends(x: torch.Tensor) -> torch.Tensor:
    y = torch.cat([x] * 6)
    os._exit(9)
ends(torch.ones(4 << 20))
"""
    done, _ = run(spillway, [sys.executable, "-c", code])
    check(done.returncode == 9, done.stdout, done.stderr)
    check("tests::ends was running when the script ended: it used at least 112 MiB" in done.stderr, done.stderr)


STATUS = {"exception": 1, "os._exit": 7, "abort": 134, "interrupt": 130, "kill": 137, "plainly": 0}


@normal("plainly", "interrupt", "kill")
@long("exception", "os._exit", "abort")
def every_end_has_its_status_and_its_report(spillway, *ends):
    for end in ends:
        status = STATUS[end]
        done, report = run(spillway, script("ends.py", end))
        check(done.returncode == status and report["exit_status"] == status, end, done.returncode, report, done.stderr)
        check(report["first_touches"] > 70 and report["moved_bytes"]["device_to_ssd"] > 90 * MIB, end, report)
        check(("KeyboardInterrupt" in done.stderr) == (end == "interrupt"), end, done.stderr)


@normal()
def a_recorded_iteration_survives_any_end(spillway):
    name = os.path.join(SCRIPTS, "embedding_lstm.py")
    command = [sys.executable, "-c", f"exec(open({name!r}).read()); import os; os.kill(os.getpid(), 9)"]
    with tempfile.TemporaryDirectory() as folder:
        done, report = run(spillway, command, "--record", folder)
        check(done.returncode == 137 and report["iteration_count"] == 5, done.returncode, report)
        check(any(kernel["name"].startswith("aten::lstm") for kernel in read_json(report["trace_file"])["kernels"]))
        # A slip of the pen does not cost it.
        done, _ = run(spillway, ["no-such-program"], "--record", folder)
        check(done.returncode == 127 and os.path.exists(report["trace_file"]), done.returncode, done.stderr)


@normal()
def running_out_of_all_memory_is_pytorchs_error_and_can_be_caught(spillway):
    done, report = run(spillway, script("fills_memory.py"), "--ssd-capacity", "128MiB")
    check(done.returncode == 0, done.stdout, done.stderr)
    for part in ("caught after", "spillway", "ssd 128 MiB", "then 12582912.0"):
        check(part in done.stdout, part, done.stdout)
    check(report["peak_ssd_bytes"] <= 128 * MIB, report)


@normal()
def calls_that_would_keep_pages_from_moving_fail_at_once(spillway):
    done, report = run(spillway, script("locks_pages.py"))
    check(done.returncode == 0, done.stdout, done.stderr)
    calls = ["mlock ENOMEM", "mlock2 ENOMEM", *["mprotect EACCES"] * 2, "mremap EINVAL", *["madvise EINVAL"] * 5, "munmap EINVAL",
             "pkey_mprotect EACCES", "mlockall ENOMEM"]
    check("failed: " + ", ".join(calls) in done.stdout, done.stdout)
    for call in ("mlock", "mprotect", "mremap", "madvise", "munmap", "pkey_mprotect", "mlockall"):
        check(f"called {call} on a tensor's memory" in done.stderr, call, done.stderr)
    check(report["moved_bytes"]["ssd_to_device"] > 0, report)


@normal("fork")
@long("fork", "shared")
@long("spawn")
def worker_processes_read_tensors_of_their_parent(spillway, *how):
    done, _ = run(spillway, script("workers.py", *how))
    check(done.returncode == 0 and "total 8386560.0" in done.stdout, done.stdout, done.stderr)


@normal()
def a_child_and_its_child_see_their_moment(spillway):
    done, _ = run(spillway, script("forks.py"))
    check(done.returncode == 0 and done.stdout.split() == ["inner", "0.0", "child", "0.0", "parent", "1.0"], done.stdout, done.stderr)


main()
