#!/usr/bin/env python3
"""Checks of the source text: python3 tests/lint/lint.py format | layers | sizes | names | listed | alone BUILD | tidy BUILD FOLDER sources|tests

Each is one test of CTest. alone and tidy remember in BUILD/lint what passed, and look again only at what changed.
"""
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cache import Cache, inputs_of
from sources import FOLDERS, ROOT, arguments_for_header, compile_commands, is_test, ours, union

LONGEST_FILE = 800
# Arrows point down only: a folder includes itself and those before it in this list ...
LAYERS = ("base", "trace", "import", "latency", "roofline", "analysis", "memory", "plan", "executor", "timeline", "policies", "recorder", "machines", "journal",
          "runtime", "report", "evaluation", "pages", "reproduce", "session", "hook", "cli")
# ... and who acts knows nothing of who decides.
NEVER = {("machines", "policies")}
SKIPPED = 77


def need(tool):
    path = shutil.which(tool)
    if path is None:
        print(f"skipped: {tool} is not installed (apt-get install {tool})")
        sys.exit(SKIPPED)
    return path


def check_format():
    files = [str(f) for f in ours(".h", ".cpp", ".c")]
    done = subprocess.run([need("clang-format-19"), "--dry-run", "-Werror", *files], cwd=ROOT)
    if done.returncode:
        print("to mend: clang-format-19 -i FILE")
    return done.returncode


def check_layers():
    wrong = 0
    for file in ours(".h", ".cpp", ".c"):
        if file.parts[0] != "src" or file.stem.endswith("_test"):
            continue
        folder = file.parts[1]
        if folder not in LAYERS:
            print(f"{file}: the folder src/{folder} has no place in LAYERS (tests/lint/lint.py)")
            wrong += 1
            continue
        for number, line in enumerate((ROOT / file).read_text().splitlines(), 1):
            included = re.match(r'\s*#\s*include "([a-z_]+)/', line)
            if not included or included[1] not in LAYERS:
                continue
            if LAYERS.index(included[1]) > LAYERS.index(folder) or (folder, included[1]) in NEVER:
                print(f"{file}:{number}: src/{folder} must not include from src/{included[1]}: {line.strip()}")
                wrong += 1
    return wrong > 0


def check_sizes():
    wrong = 0
    for file in ours(".h", ".cpp", ".c", ".py"):
        lines = len((ROOT / file).read_text().splitlines())
        if lines > LONGEST_FILE:
            print(f"{file}: {lines} lines; split it, {LONGEST_FILE} is the most")
            wrong += 1
    return wrong > 0


def check_names():
    """Two types of one name in two headers are one type to the linker, which takes the functions of either for both."""
    where = {}
    for file in ours(".h"):
        if file.parts[0] == "src":
            for name in re.findall(r"^(?:struct|class|enum class) (?:SPILLWAY_\w+ )?(?!SPILLWAY_)(\w+)(?!\w|::)[^;()]*\{", (ROOT / file).read_text(), re.M):
                where.setdefault(name, []).append(str(file))
    twice = {name: files for name, files in where.items() if len(files) > 1}
    for name, files in twice.items():
        print(f"{name} is defined in {' and in '.join(files)}: give one of them another name")
    return bool(twice)


def check_listed():
    """A test that no CMakeLists.txt names is never run, and nobody notices."""
    wrong = []
    for file in ours(".cpp", ".py"):
        text = (ROOT / file).read_text()
        is_case = file.parent == Path("tests/torch") and re.search(r"^@(quick|normal|long)\(", text, re.M)
        if is_case and not text.endswith("\nmain()\n"):
            wrong.append(f"{file}: must end with main(): cases below it are never run")
        if file.stem.endswith("_fuzz"):
            name = rf"spillway_fuzzer\({file.stem.removesuffix('_fuzz')} "
        elif is_case:
            name = rf"\b{file.stem}\b"
        elif file.stem.endswith("_test") and file.suffix == ".cpp":
            name = rf"(?<![\w/]){re.escape(file.name)}\b"
        else:
            continue
        lists = ROOT / file.parent / "CMakeLists.txt"
        if not lists.exists() or not re.search(name, re.sub(r"#.*", "", lists.read_text())):
            wrong.append(f"{file}: {file.parent}/CMakeLists.txt does not name it")
    # CTest knows suites by their names alone.
    folders = {}
    for file in ours(".cpp"):
        for suite in re.findall(r"^(?:RC_GTEST|TEST)\w*\((\w+),", (ROOT / file).read_text(), re.M):
            folders.setdefault(suite, set()).add(str(file.parent))
    wrong += [f"there is a suite {suite} in {' and in '.join(sorted(where))}: give one of them another name"
              for suite, where in folders.items() if len(where) > 1]
    for line in wrong:
        print(line)
    return bool(wrong)


def compiles_alone(file, arguments, cache):
    depfile = cache.folder / (str(file).replace("/", "-") + ".d")
    input = ["-include", str(ROOT / file), "-x", "c++", "/dev/null"] if file.suffix == ".h" else [str(ROOT / file)]
    command = ["g++", *arguments, "-fsyntax-only", "-MMD", "-MF", str(depfile), "-MT", "file", *input]
    key = " ".join(command)
    if cache.passed(file, key):
        return True
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        print(f"{file} does not compile alone:\n{done.stderr}", flush=True)
        return False
    cache.remember(file, key, inputs_of(depfile.read_text(), ROOT))
    return True


def check_alone(build):
    """Each file includes what it needs; the build, which compiles the files of a folder as one, does not show that."""
    commands, cache = compile_commands(build), Cache(Path(build) / "lint/alone")
    arguments = {header: arguments_for_header(header, commands) for header in ours(".h")} | commands
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        good = list(pool.map(lambda file: compiles_alone(file, arguments[file], cache), arguments))
    print(f"{sum(good)} of {len(good)} files compile alone")
    return not all(good)


def check_tidy(build, folder, kind):
    """Looks at all files of one folder as one: parsing what they include is most of the work. kind: sources or tests."""
    tidy, cache = need("clang-tidy-19"), Cache(Path(build) / f"lint/tidy-{kind}")
    commands = {file: arguments for file, arguments in compile_commands(build).items()
                if file.parent == Path(folder) and is_test(file) == (kind == "tests")}
    if not commands:
        print(f"skipped: this build compiles no {kind} in {folder} (the hook needs -DSPILLWAY_PYTHON)")
        return SKIPPED
    arguments = union(commands.values())
    joined = cache.folder / (folder.replace("/", "-") + ".cpp")
    joined.write_text("".join(f'#include "{ROOT / file}"\n' for file in sorted(commands)))
    # Three quarters of the time go into one check: it looks at all callers of everything, PyTorch's and the library's too.
    checks = "-bugprone-suspicious-include" + ("" if "SPILLWAY_TEST_LONG" in os.environ else ",-performance-unnecessary-value-param")
    # Locks are proved here (base/mutex.h). For the next two see SpillwayTargets.cmake; g++ has options that Clang has not.
    flags = ["-Wthread-safety", "-Wno-sign-conversion", "-Wno-deprecated-declarations", "-Wno-unknown-warning-option"]
    key = " ".join([tidy, checks, *arguments, *flags])
    if cache.passed(joined, key):
        print("unchanged since it last passed")
        return 0
    done = subprocess.run([tidy, "--quiet", f"--config-file={ROOT}/.clang-tidy", f"--checks={checks}",
                           f"--header-filter=^{re.escape(str(ROOT))}/({'|'.join(FOLDERS)})/", str(joined), "--", *arguments,
                           *flags],
                          cwd=ROOT, capture_output=True, text=True)
    print(done.stdout)
    if done.returncode:
        print(done.stderr)
        return 1
    rule = subprocess.run(["g++", *arguments, "-MM", str(joined)], cwd=ROOT, capture_output=True, text=True, check=True)
    cache.remember(joined, key, [ROOT / ".clang-tidy", *inputs_of(rule.stdout, ROOT)])
    return 0


def main():
    checks = {"format": check_format, "layers": check_layers, "sizes": check_sizes, "names": check_names, "listed": check_listed,
              "alone": check_alone, "tidy": check_tidy}
    if len(sys.argv) < 2 or sys.argv[1] not in checks:
        sys.exit(__doc__)
    status = checks[sys.argv[1]](*sys.argv[2:])
    sys.exit(status)


if __name__ == "__main__":
    main()
