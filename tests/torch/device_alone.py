"""device_alone.py DRIVER:DEVICE: training on the device without a GPU (device/), without Spillway, computes what the CPU computes, and
computes it again. The libraries are libstrict_cuda.so and libstrict_device.so."""

import os
import subprocess
import sys

from cases import EXAMPLES, HERE, SCRIPTS, check, long, main, normal, quick, without_times

ON_A_DEVICE = os.path.join(SCRIPTS, "on_a_device.py")
GPT = [os.path.join(EXAMPLES, "train_gpt.py"), "--layers", "2", "--width", "256", "--batch", "2", "--length", "64", "--words", "2000"]
RESNET = [os.path.join(EXAMPLES, "train_resnet.py"), "--batch", "2", "--size", "64"]


def lines(command, **variables):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=300, env=environment)
    return done, [line for line in without_times(done.stdout) if not line.startswith("peak ")]


def on_the_device(libraries, *command):
    driver, device = libraries.split(":")
    return lines([os.path.join(HERE, "device", "strict_device.py"), device, *command], SPILLWAY_CUDA_DRIVER=driver)


def on_both(libraries, *command):
    there, printed = on_the_device(libraries, *command, "--device", "strict")
    check(there.returncode == 0, there.stderr)
    here, expected = lines(command)
    check(here.returncode == 0, here.stderr)
    return printed, expected


@quick("gan")
@normal("accumulation")
def computes_what_the_cpu_computes(libraries, model):
    printed, expected = on_both(libraries, ON_A_DEVICE, model)
    check(printed == expected and len(printed) == 7, printed, expected)


@normal("gpt")
@long("resnet")
def trains_an_example(libraries, name):
    printed, expected = on_both(libraries, *{"gpt": GPT, "resnet": RESNET}[name], "--steps", "3")
    check(printed == expected and len(printed) == 4, printed, expected)


@normal("streams")
@long("lstm", "checkpointing", "attention")
def computes_the_same_again(libraries, *models):
    for model in models:  # The CPU draws its dropout otherwise, and oneDNN's LSTM rounds otherwise.
        runs = [on_the_device(libraries, ON_A_DEVICE, model, "--device", "strict") for _ in range(2)]
        check(all(done.returncode == 0 for done, _ in runs), *(done.stderr for done, _ in runs))
        check(runs[0][1] == runs[1][1] and len(runs[0][1]) == 7, *(printed for _, printed in runs))


@normal()
def ends_where_a_kernel_touches_what_is_not_mapped(libraries):
    beyond = "import torch; x = torch.ones(4, device='strict'); x.set_(x.untyped_storage(), 1 << 20, (4,)).add_(1)"
    driver, device = libraries.split(":")
    code = f"import sys; sys.path.insert(0, {os.path.join(HERE, 'device')!r}); import strict_device; strict_device.load({device!r}); {beyond}"
    done, _ = lines(["-c", code], SPILLWAY_CUDA_DRIVER=driver)
    check(done.returncode < 0 and " touches what is not mapped" in done.stderr, done.returncode, done.stderr)


main()
