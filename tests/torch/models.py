"""models.py FOLDER: each script of examples/models trains each of its models on the meta device, where it can read no value, and the
model has as many parameters as is published; the small ones have losses on the CPU. Spillway itself takes no part."""

import contextlib
import io
import math
import os
import runpy
import sys

from cases import HERE, check, main, normal, skip

LIBRARIES = os.path.join(HERE, "..", "..", ".venv", "model-libraries")  # where ./test installs what the scripts import

# Those of bert.py are the encoder's 109,482,240 or 335,141,888, and a classifier of 2 classes or a bias for each of 30,522 words.
PUBLISHED = {
    "bert": {
        "--size base": 109_482_240 + 2 * 768 + 2,
        "--size base --task wikitext": 109_514_298,
        "--size large": 335_141_888 + 2 * 1024 + 2,
        "--size large --task wikitext": 335_174_458,
    },
    "gpt2": {"--size small": 124_439_808, "--size large": 774_030_080, "--size xl": 1_557_611_200},
    "llama": {"--size 7b": 6_738_415_616, "--size 3b": 3_212_749_824, "--size 1b": 1_235_814_400},
    "vit": {"--model b16": 86_567_656, "--model s32": 22_878_952},
    "vision": {
        "--model vgg16": 138_357_544,
        "--model resnet50": 25_557_032,
        "--model resnet152": 60_192_808,
        "--model resnet200": 64_673_832,
        "--model senet154": 115_088_984,
        "--model densenet121": 7_978_856,
        "--model inception_v3": 27_161_264,
        "--model inception_v4": 42_679_816,
        "--model mobilenet": 4_231_976,
    },
    "dcgan": {"": 3_576_704 + 2_765_568},
    "dlrm": {  # tables, and the perceptrons before and after them
        "--size kaggle": 16 * 33_762_577 + 155_984 + 320_001,
        "--size mlperf": 128 * 33_762_577 + 171_392 + 2_197_505,
    },
}

SMALL = {
    "bert": "--batch 1 --length 16",
    "gpt2": "--batch 1 --length 16",
    "llama": "--size tiny --batch 1 --length 64",
    "vit": "--model s32 --batch 2",
    "vision": "--model mobilenet --batch 2 --size 64",
    "dcgan": "--batch 2",
    "dlrm": "--batch 16 --most-rows 1000",
}


def printed(folder, script, options):
    """The lines that the script prints. It runs in this process: importing its libraries takes longer than all else."""
    sys.path[:0] = [folder, LIBRARIES]
    sys.argv = [os.path.join(folder, f"{script}.py"), *options.split()]
    output = io.StringIO()
    try:
        with contextlib.redirect_stdout(output):
            runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as ended:
        if not isinstance(ended.code, str):
            raise
        skip(ended)  # It cannot import a library, and says which. That it can import those which it has installed, ./test checks.
    return [line.split() for line in output.getvalue().splitlines()]


@normal("bert")
@normal("gpt2")
@normal("llama")
@normal("vision")
@normal("vit", "dcgan", "dlrm")
def as_large_as_published(folder, *scripts):
    for script, options, parameters in [(script, *one) for script in scripts for one in PUBLISHED[script].items()]:
        lines = printed(folder, script, f"{options} --device meta --batch 2 --steps 2")
        check(lines[0] == ["parameters", str(parameters)], script, options, parameters, lines)
        check([line[:3] for line in lines[1:]] == [["step", "0", "seconds"], ["step", "1", "seconds"]], script, options, lines)
        print("ok", script, options, parameters, flush=True)


@normal()
def losses_on_the_cpu(folder):
    for script, options in SMALL.items():
        lines = printed(folder, script, f"{options} --steps 1")
        (_, _, word, loss, *_), weights = lines[1], lines[2]
        check(word == "loss" and math.isfinite(float.fromhex(loss)) and float.fromhex(loss) > 0, script, lines)
        check(weights[0] == "weights" and len(weights[1]) == 64, script, lines)
        print("ok", script, float.fromhex(loss), flush=True)


main()
