"""distributed_runs.py SPILLWAY: torchrun starts `spillway run` for each rank, as docs/guide.md says."""

import os
import subprocess
import sys
import tempfile

from cases import MIB, check, least_memory, main, normal, read_json, script

RANKS = 2
LIMITED = 'exec "$0" run --device-memory "$1" --json "$2/report-$RANK.json" -- "$3" "$4" "$2"'


def train(folder, *command):
    """What each rank has put down."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--no-python", "--nproc-per-node", str(RANKS)]
    done = subprocess.run([*torchrun, *command], env=environment, capture_output=True, text=True, timeout=300)
    check(done.returncode == 0, done.stderr)
    results = []
    for rank in range(RANKS):
        with open(os.path.join(folder, f"results-{rank}"), encoding="ascii") as file:
            results.append(file.read().split())
    return results


@normal()
def ranks_that_average_gradients(spillway):
    training, memory = script("averages_gradients.py"), least_memory()
    with tempfile.TemporaryDirectory() as folder:
        expected = train(folder, *training, folder)
        check(expected[0][:-1] != expected[1][:-1] and expected[0][-1] == expected[1][-1], "each rank has data of its own", expected)
    with tempfile.TemporaryDirectory() as folder:
        results = train(folder, "sh", "-c", LIMITED, spillway, memory, folder, *training)
        check(results == expected, results, expected)
        for rank in range(RANKS):
            report = read_json(folder, f"report-{rank}.json")
            check(report["peak_device_bytes"] <= report["device_budget_bytes"], report)
            check(report["moved_bytes"]["ssd_to_device"] > 32 * MIB and not report["unmanaged_processes"], report)
            print("ok rank", rank, report["moved_bytes"], "faults", report["faults"], flush=True)


main()
