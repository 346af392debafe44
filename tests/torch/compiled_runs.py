"""compiled_runs.py SPILLWAY: the kernels that torch.compile makes are invisible; their tensors are paged all the same, with the results of
a run without limits, and the report says so once."""

import subprocess

from cases import MIB, check, long, main, run, script, skip


@long()
def compiled_kernels_are_paged(spillway):
    command = script("compiled.py")
    alone = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if alone.returncode != 0:
        skip(f"torch.compile does not work here: {alone.stderr[-500:]}")
    done, report = run(spillway, command)
    check(done.returncode == 0 and done.stdout == alone.stdout, done.stdout, alone.stdout, done.stderr)
    check(report["faults"] > 0 and report["moved_bytes"]["ssd_to_device"] > 50 * MIB, report)
    check(sum("torch.compile" in notice for notice in report["notices"]) == 1, report["notices"])
    check(done.stderr.count("torch.compile") == 1, done.stderr)


main()
