#!/usr/bin/env python3
"""Do the sources that meet PyTorch compile with the oldest one whose CUDA they are for? python3 oldest_headers_test.py BUILD HEADERS

HEADERS has the folder include/ of that PyTorch (see scripts/setup.sh). Also: the allocator passes on every function that this
PyTorch's allocator has, and that of the build. One that is left out has a default that fails, which no compiler tells.
"""
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lint"))
from sources import ROOT, compile_commands, is_test, union  # noqa: E402

FOLDERS = Path("src/hook/torch"), Path("src/hook/torch/cuda")
INTERFACES = {"c10/core/Allocator.h": "Allocator", "c10/core/CachingDeviceAllocator.h": "DeviceAllocator",
              "c10/cuda/CUDACachingAllocator.h": "CUDAAllocator"}
LEFT_AS_IT_IS = {"is_simple_data_ptr"}


def is_of_torch(folder):
    return (Path(folder) / "c10/core/Allocator.h").exists() or folder.endswith("torch/csrc/api/include")


def compiles(folder, commands, include):
    files = sorted(file for file in commands if file.parent == folder and not is_test(file))
    arguments = union(commands[file] for file in files)
    words = []
    for at, word in enumerate(arguments):
        if at and arguments[at - 1] == "-isystem" and is_of_torch(word):
            word = str(include / "torch/csrc/api/include" if word.endswith("api/include") else include)
        words.append(word)
    joined = "".join(f'#include "{ROOT / file}"\n' for file in files)
    done = subprocess.run(["g++", *words, "-fsyntax-only", "-x", "c++", "-"], cwd=ROOT, input=joined, text=True)
    print(f"{folder}: {len(files)} files {'compile' if done.returncode == 0 else 'do not compile'} with {include}")
    return done.returncode == 0


def functions(include):
    for file, name in INTERFACES.items():
        text = (include / file).read_text()
        begin = re.search(rf"^(class|struct)\b[^;{{]*\b{name}\b[^;{{]*\{{", text, re.M).start()
        yield from re.findall(r"\bvirtual\s[^;{]*?(?<!~)\b(\w+)\(", re.sub(r"//.*", "", text[begin:text.index("\n};", begin)]))


def passes_all_on(include):
    ours = (ROOT / FOLDERS[1] / "delegating_allocator.h").read_text()
    left_out = {name for name in functions(include) if not re.search(rf"\b{name}\(.*override", ours, re.S)} - LEFT_AS_IT_IS
    if left_out:
        print(f"{FOLDERS[1]}/delegating_allocator.h does not pass on: {', '.join(sorted(left_out))} ({include})")
    return not left_out


def main():
    build, headers = map(Path, sys.argv[1:])
    include = headers / "include"
    if not include.exists():
        print(f"skipped: there is no {include}; ./test downloads it, but not ./test --quick")
        sys.exit(77)
    commands = compile_commands(build)
    present = {Path(word) for word in commands[FOLDERS[1] / "install.cpp"] if is_of_torch(word)}
    wrong = [not passes_all_on(folder) for folder in sorted({include, *present}) if (folder / "c10/cuda").exists()]
    wrong += [not compiles(folder, commands, include) for folder in FOLDERS]
    sys.exit(any(wrong))


main()
