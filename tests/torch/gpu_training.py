"""gpu_training.py SPILLWAY:DRIVER:DEVICE: bench/gpu_training.py, which asks a GPU, asks the device without a GPU (device/) for small models.
So what it asks works, and it says what it finds. How fast anything is here means nothing."""

import json
import os
import subprocess
import sys
import tempfile

from cases import EXAMPLES, HERE, check, long, main, normal, read_json, without_times

BENCH = os.path.join(HERE, "..", "..", "bench")
PROGRAMS = [sys.executable, os.path.join(BENCH, "gpu", "random_programs.py"), "--programs", "4", "--memory", "8"]
PEER = [sys.executable, os.path.join(BENCH, "gpu", "as_peer.py")]


def ask(libraries, path, only, *options, **variables):
    """Its exit status, what it printed, and the verdict and its text for each target and model."""
    spillway, driver, device = libraries.split(":")
    through = f"{os.path.join(HERE, 'device', 'strict_device.py')} {device}"
    command = [sys.executable, os.path.join(BENCH, "gpu_training.py"), spillway, "--small", "--device", "strict", "--through", through,
               "--only", only, "--json", path, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=800,
                          env={**os.environ, "OMP_NUM_THREADS": "1", "SPILLWAY_CUDA_DRIVER": driver, **variables})
    check(os.path.exists(path), done.stdout, done.stderr)
    return done, {(v["target"], v["model"]): (v["verdict"], v["text"]) for v in read_json(path)["verdicts"]}


@normal()
def says_whether_it_holds(libraries):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "training.json")
        done, found = ask(libraries, path, "llama")
        same, trains = found["same losses and weights", "llama"], found["trains with 96MiB", "llama"]
        check(done.returncode == 0 and same[0] == trains[0] == "holds", done.stdout, done.stderr)
        check("words/s; plain PyTorch with all memory" in trains[1] and "2 holds" in done.stdout, done.stdout)
        # A second call asks for nothing again. Here it finds that plain PyTorch has computed something else.
        everything = read_json(path)
        check(everything["figures"]["llama"]["96MiB"]["peak_bytes"] <= 96 << 20, everything["figures"])
        everything["results"]["llama"]["plain"]["lines"][3] = "step 3 loss 0x1p+0"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(everything, file)
        done, found = ask(libraries, path, "llama", "--within", "0")
        same = found["same losses and weights", "llama"]
        check(done.returncode == 1 and same[0] == "does not hold" and "'step 3 loss 0x1p+0' became" in same[1], done.stdout, done.stderr)
        everything["of"] = "another build"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(everything, file)
        done, found = ask(libraries, path, "llama", "--within", "0")
        check(done.returncode == 1 and all(verdict == "not reached" for verdict, _ in found.values()), done.stdout)


@long(cpus=1)
def what_the_card_has_no_memory_for_is_no_failure(libraries):
    with tempfile.TemporaryDirectory() as folder:
        done, found = ask(libraries, os.path.join(folder, "training.json"), "llama", STRICT_CUDA_DEVICE_BYTES=str(170 << 20))
        trains = found["trains with 96MiB", "llama"]
        check(done.returncode == 0 and trains[0] == "holds" and trains[1].endswith("plain PyTorch: out of memory"), done.stdout, done.stderr)


@normal()
def says_where_there_is_no_gpu(libraries):
    done = subprocess.run([sys.executable, os.path.join(BENCH, "gpu_training.py"), libraries.split(":")[0]], capture_output=True, text=True,
                          timeout=300, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    check(done.returncode == 77 and done.stdout == "there is no GPU that PyTorch can use\n", done.stdout, done.stderr)


@normal()
def random_programs_that_differ_are_named(_):
    with tempfile.NamedTemporaryFile("w+") as file:
        subprocess.run([*PROGRAMS, "--write", file.name], check=True, capture_output=True)
        hashes = file.read().split()
        check(len(set(hashes)) == 4, hashes)
        file.seek(0)
        file.write("0" * 64)
        file.flush()
        done = subprocess.run([*PROGRAMS, "--compare", file.name], capture_output=True, text=True)
        check(done.returncode == 1 and done.stdout.startswith("different: 0\nprograms 4 different 1"), done.stdout, done.stderr)


@long()
def asks_all_of_a_model_and_random_programs(libraries):
    with tempfile.TemporaryDirectory() as folder:
        done, found = ask(libraries, os.path.join(folder, "training.json"), "gpt2,random programs", "--programs", "60", "--within", "700")
        # This device has no pinned memory for FSDP2, and `--strict` is the Spillway's affair.
        of_others = [target for target, _ in found if target.startswith(("strict:", "2 times fsdp2"))]
        check(len(found) == 10 and len(of_others) == 2, done.stdout, done.stderr)
        reached = {target: verdict for (target, _), (verdict, _) in found.items() if target not in of_others}
        check("not reached" not in reached.values(), done.stdout, done.stderr)
        check(reached["same losses and weights"] == reached["the same"] == "holds", done.stdout, done.stderr)
        check(found["1.5 times save_on_cpu", "gpt2"][0] == "does not apply", done.stdout)  # Its weights are what takes memory.
        check("simulated before" in found["50 % of its peak: within 5 %", "gpt2"][1], done.stdout)


@long()
def fsdp2_trains_the_examples(_):
    """On the CPU: the first loss is the same, and the next ones nearly, since its optimizer rounds otherwise."""
    for script in (["train_gpt.py", "--layers", "2", "--width", "256", "--batch", "2", "--length", "32", "--words", "1000", "--checkpointing"],
                   ["train_llama.py", "--size", "tiny", "--batch", "2", "--length", "32", "--lora", "4"],
                   ["train_vit.py", "--batch", "2", "--size", "64", "--layers", "2"],
                   ["train_resnet.py", "--batch", "2", "--size", "64"]):
        runs = []
        for way in ("plain", "fsdp2"):
            done = subprocess.run([*PEER, way, os.path.join(EXAMPLES, script[0]), *script[1:], "--steps", "3", "--device", "cpu"],
                                  capture_output=True, text=True, timeout=300)
            check(done.returncode == 0, way, script, done.stderr)
            runs.append(without_times(done.stdout))
        losses = [[float.fromhex(line.split()[-1]) for line in lines[:3]] for lines in runs]
        check(losses[0][0] == losses[1][0] and len(runs[1]) == 4, script, *runs)
        check(all(abs(a - b) < 0.05 * a for a, b in zip(*losses)), script, *losses)


main()
