"""limited_runs.py SPILLWAY: PyTorch scripts with a quarter of the memory that they use do what they do with all of it, and
however they end, the report says how."""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20


def script(name, *arguments):
    return [sys.executable, os.path.join(HERE, "scripts", name), *arguments]


def run(spillway, command, *options, before=()):
    """What a run at the least budget printed and said; `before`: a program that starts it."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.json")
        limits = ["--device-memory", f"{32 * len(os.sched_getaffinity(0))}MiB", "--json", path]
        line = [*before, spillway, "run", *limits, *options, "--", *command]
        done = subprocess.run(line, capture_output=True, text=True, timeout=300)
        if not os.path.exists(path):
            return done, None
        with open(path, encoding="utf-8") as file:
            return done, json.load(file)


def check(condition, *evidence):
    if not condition:
        raise AssertionError("\n".join(map(str, evidence)))


def results_do_not_depend_on_the_memory(spillway):
    command = script("larger_than_memory.py")
    expected = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for options in (["--eviction-path", "copy"], ["--host-memory", "64MiB"], []):
        done, report = run(spillway, command, *options)
        check(done.returncode == 0 and done.stdout == expected, done.stdout, expected, done.stderr)
        check(report["faults"] > 100 and report["moved_bytes"]["ssd_to_device"] > 100 * MIB, report)
        check(report["peak_device_bytes"] <= report["device_budget_bytes"], report)
        check((report["plan"] is None) == (report["no_plan_because"] is not None), report["plan"], report["no_plan_because"])


def what_is_larger_than_the_memory_is_named(spillway):
    for part, named in ((0.9, False), (1.1, True)):
        code = f"import os, torch; torch.zeros(int({part} * len(os.sched_getaffinity(0)) * (32 << 20) / 4)).add_(1)"
        done, report = run(spillway, [sys.executable, "-c", code])
        check(done.returncode == 0 and report is not None, done.stderr)
        check(("aten::add_ is given" in done.stderr or "aten::zero_ is given" in done.stderr) == named, part, done.stderr)


def every_end_has_its_status_and_its_report(spillway):
    for end, status in {"exception": 1, "os._exit": 7, "abort": 134, "interrupt": 130, "kill": 137, "plainly": 0}.items():
        done, report = run(spillway, script("ends.py", end))
        check(done.returncode == status and report["exit_status"] == status, end, done.returncode, report, done.stderr)
        check(report["first_touches"] > 70 and report["moved_bytes"]["device_to_ssd"] > 90 * MIB, end, report)
        check(("KeyboardInterrupt" in done.stderr) == (end == "interrupt"), end, done.stderr)


def a_recorded_iteration_survives_any_end(spillway):
    name = os.path.join(HERE, "scripts", "embedding_lstm.py")
    command = [sys.executable, "-c", f"exec(open({name!r}).read()); import os; os.kill(os.getpid(), 9)"]
    with tempfile.TemporaryDirectory() as folder:
        done, report = run(spillway, command, "--record", folder)
        check(done.returncode == 137 and report["iteration_count"] == 5, done.returncode, report)
        with open(report["trace_file"], encoding="utf-8") as file:
            check(any(kernel["name"].startswith("aten::lstm") for kernel in json.load(file)["kernels"]))
        # A slip of the pen does not cost it.
        done, _ = run(spillway, ["no-such-program"], "--record", folder)
        check(done.returncode == 127 and os.path.exists(report["trace_file"]), done.returncode, done.stderr)


def running_out_of_all_memory_is_pytorchs_error_and_can_be_caught(spillway):
    done, report = run(spillway, script("fills_memory.py"), "--ssd-capacity", "128MiB")
    check(done.returncode == 0, done.stdout, done.stderr)
    for part in ("caught after", "spillway", "ssd 128 MiB", "then 12582912.0"):
        check(part in done.stdout, part, done.stdout)
    check(report["peak_ssd_bytes"] <= 128 * MIB, report)


def calls_that_would_keep_pages_from_moving_fail_at_once(spillway):
    done, report = run(spillway, script("locks_pages.py"))
    check(done.returncode == 0, done.stdout, done.stderr)
    calls = ["mlock ENOMEM", "mlock2 ENOMEM", *["mprotect EACCES"] * 2, "mremap EINVAL", *["madvise EINVAL"] * 5, "munmap EINVAL",
             "pkey_mprotect EACCES", "mlockall ENOMEM"]
    check("failed: " + ", ".join(calls) in done.stdout, done.stdout)
    for call in ("mlock", "mprotect", "mremap", "madvise", "munmap", "pkey_mprotect", "mlockall"):
        check(f"called {call} on a tensor's memory" in done.stderr, call, done.stderr)
    check(report["moved_bytes"]["ssd_to_device"] > 0, report)


def worker_processes_read_tensors_of_their_parent(spillway):
    for arguments in (["fork"], ["fork", "shared"], ["spawn"]):
        done, _ = run(spillway, script("workers.py", *arguments))
        check(done.returncode == 0 and "total 8386560.0" in done.stdout, arguments, done.stdout, done.stderr)
    done, _ = run(spillway, script("forks.py"))
    check(done.returncode == 0 and done.stdout.split() == ["inner", "0.0", "child", "0.0", "parent", "1.0"], done.stdout, done.stderr)


def a_fork_beside_the_start_leaves_a_whole_child(spillway):
    for arguments in ([], ["once"]):
        done, report = run(spillway, script("forks_at_the_start.py", *arguments))
        check(done.returncode == 0 and done.stdout == "0 3.0\n", done.stdout, done.stderr)
        check(not any("could not wait" in notice or "process has been ended" in notice for notice in report["notices"]), report["notices"])
    check(report["unmanaged_process_count"] == 1, report)


def skip(reason):
    print("skipped:", reason)
    sys.exit(77)


def run_all(*tests):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    done, _ = run(sys.argv[1], ["true"])
    if os.getuid() != 0 and "page faults cannot be served" in done.stderr:
        skip(done.stderr)
    for test in tests:
        test(sys.argv[1])
        print("ok", test.__name__, flush=True)


def main():
    run_all(
        results_do_not_depend_on_the_memory,
        what_is_larger_than_the_memory_is_named,
        every_end_has_its_status_and_its_report,
        a_recorded_iteration_survives_any_end,
        running_out_of_all_memory_is_pytorchs_error_and_can_be_caught,
        calls_that_would_keep_pages_from_moving_fail_at_once,
        worker_processes_read_tensors_of_their_parent,
        a_fork_beside_the_start_leaves_a_whole_child,
    )


if __name__ == "__main__":
    main()
