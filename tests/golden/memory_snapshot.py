#!/usr/bin/env python3
"""Memory snapshots as Python pickles them, given to `$SPILLWAY`.

An exported trace has a profile with [memory] events. Said as a snapshot instead, they make the same trace; and a pickle that runs code
is refused without running it.
"""
import json
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

SPILLWAY = os.environ["SPILLWAY"]
TRACE = Path(__file__).resolve().parent / "six_layers.trace"
BASE_NS = 1_790_857_026_000_000_000


def snapshot_of(profile, sizes):
    """What torch.cuda.memory._snapshot() returns. It shares frames among events."""
    frames = [{"name": "to", "filename": "/lib/python3.11/site-packages/torch/nn/modules/module.py", "line": 1340},
              {"name": "train", "filename": "/home/me/train.py", "line": 17}]
    events, held = [], {}
    for event in profile["traceEvents"]:
        if event["name"] != "[memory]":
            continue
        given, address = event["args"]["Bytes"] > 0, event["args"]["Addr"]
        if given:
            held[address] = next(sizes)
        entry = {"action": "alloc" if given else "free_requested", "addr": address, "size": held.get(address, abs(event["args"]["Bytes"])),
                 "stream": 0, "time_us": (BASE_NS + int(event["ts"] * 1000)) // 1000, "compile_context": "N/A", "user_metadata": "",
                 "frames": frames}
        events += [entry] if given else [entry, dict(entry, action="free_completed")]
    events += [{"action": "oom", "device_free": 5 << 40, "size": 1 << 62, "stream": 0, "time_us": events[-1]["time_us"] + 1, "frames": []},
               {"action": "snapshot", "addr": 0, "size": 0, "stream": 0, "time_us": events[-1]["time_us"] + 2, "frames": []}]
    segment = {"device": 0, "address": 1 << 46, "total_size": 2 << 20, "stream": 0, "segment_type": "small", "segment_pool_id": (0, 0),
               "is_expandable": False, "allocated_size": 512, "active_size": 512, "requested_size": 4, "frames": frames,
               "blocks": [{"address": 1 << 46, "size": 512, "requested_size": 4, "state": "active_allocated", "frames": frames}]}
    settings = {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0, "expandable_segments": False,
                "roundup_power2_divisions": {"1": 0}, "largest": 1 << 64}
    return {"segments": [segment], "device_traces": [events, []], "allocator_settings": settings, "external_annotations": []}


class Attack:
    def __init__(self, proof):
        self.proof = proof

    def __reduce__(self):
        return os.system, (f"touch {self.proof}",)


def spillway(*arguments, status=0):
    done = subprocess.run([SPILLWAY, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != status:
        sys.exit(f"{arguments}: status {done.returncode}, not {status}: {done.stdout}{done.stderr}")
    return done.stderr


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        et, profile, snapshot, output = folder / "et.json", folder / "profile.json", folder / "snapshot.pickle", folder / "model.trace"

        def imported(*files):
            spillway("import", *files, "-o", output)
            return json.loads(output.read_text())

        spillway("export", "chakra", TRACE, "-o", et, "--profile", profile)
        wanted = imported("chakra", et, profile)
        events = json.loads(profile.read_text())
        made = (node["outputs"]["values"] for node in json.loads(et.read_text())["nodes"])
        data = snapshot_of(events, (tensor[3] for tensors in made for tensor in tensors))
        events["baseTimeNanoseconds"] = BASE_NS
        events["traceEvents"] = [event for event in events["traceEvents"] if event["name"] != "[memory]"]
        profile.write_text(json.dumps(events))
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            snapshot.write_bytes(pickle.dumps(data, protocol))
            trace = imported("memory-snapshot", snapshot, profile, et)
            born = [tensor for tensor in trace["tensors"] if tensor["name"] == "train.py:17 train"]
            assert len(born) == sum(not tensor["persistent"] and tensor["kind"] != "input" for tensor in trace["tensors"])
            for tensor, other in zip(trace["tensors"], wanted["tensors"]):
                tensor["name"] = other["name"]
            assert trace["tensors"] == wanted["tensors"] and trace["kernels"] == wanted["kernels"], f"protocol {protocol}"
        output.unlink()

        error = spillway("import", "memory-snapshot", snapshot, "-o", output, status=2)
        assert "Which kernels run, when, and which tensors they use is not in it" in error, error
        error = spillway("import", "memory-snapshot", snapshot, profile, "-o", output, status=2)
        assert "addresses without operators" in error, error
        proof = folder / "proof"
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            snapshot.write_bytes(pickle.dumps({"segments": [], "device_traces": [[Attack(proof)]]}, protocol))
            error = spillway("import", "memory-snapshot", snapshot, profile, et, "-o", output, status=1)
            assert "GLOBAL" in error and "one that runs code" in error, error
        snapshot.write_bytes(pickle.dumps(data)[:1000])
        assert "is it cut off?" in spillway("import", "memory-snapshot", snapshot, "-o", output, status=1)
        assert not proof.exists() and not output.exists()


main()
