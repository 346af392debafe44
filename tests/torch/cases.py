"""What the tests with PyTorch share: a file of them says which cases it has, and which of ./test --quick, ./test and ./test --long run
each; CMake asks it by --list.

    @normal("auto")
    @long("g10", "furthest")
    def a_steady_script(spillway, *policies): ...

    python3 FILE PROGRAM [NAME ...]     runs these cases, or all
    python3 FILE --list                 name, from which kind of test on, and CPUs of each, one a line
"""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = os.path.join(HERE, "scripts")
EXAMPLES = os.path.join(HERE, "..", "..", "examples")
MIB = 1 << 20

_cases = {}  # name -> (function, arguments, from, cpus), in the order in which the file has them


def _decorator_for(kind, default_cpus=1):
    def decorator(*arguments, cpus=default_cpus):
        assert all(isinstance(argument, str) for argument in arguments), f"@{kind}() and its like want brackets, and words in them"
        def add(function):
            name = ".".join([function.__name__, *filter(None, [",".join(arguments)])])
            assert name not in _cases, f"there are two cases {name}"
            _cases[name] = (function, arguments, kind, cpus)
            return function
        return add
    return decorator


quick, normal, long = _decorator_for("quick"), _decorator_for("normal"), _decorator_for("long", default_cpus=2)


_here = sorted(os.sched_getaffinity(0))


def keep_cpus(count):
    """The CPUs that CTest gave the test (see RESOURCE_GROUPS there), or the first ones."""
    given = [os.environ.get(f"CTEST_RESOURCE_GROUP_{group}_CPUS") for group in range(count)]
    os.sched_setaffinity(0, [int(one.split(",")[0].removeprefix("id:")) for one in given] if all(given) else _here[:count])


def need_page_faults(spillway):
    done = subprocess.run([spillway, "run", "--device-memory", least_memory(), "true"], capture_output=True, text=True, timeout=300)
    if os.getuid() != 0 and "page faults cannot be served" in done.stderr:
        skip(done.stderr)


def main():
    if sys.argv[1:] == ["--list"]:
        for name, (_, _, kind, cpus) in _cases.items():
            print(name, kind, cpus)
        return
    program, *names = sys.argv[1:]
    if os.path.basename(program) == "spillway":
        need_page_faults(program)
    for name in names or _cases:
        function, arguments, _, cpus = _cases[name]
        keep_cpus(cpus)
        function(program, *arguments)
        print("ok", name, flush=True)


def check(condition, *evidence):
    if not condition:
        raise AssertionError("\n".join(map(str, evidence)))


def skip(reason):
    print("skipped:", reason)
    sys.exit(77)


def script(name, *arguments):
    return [sys.executable, os.path.join(SCRIPTS, name), *arguments]


def read_json(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return json.load(file)


def file_system(image, size):
    """An empty one, in this file."""
    if not os.path.exists("/sbin/mkfs.ext4"):
        skip("there is no /sbin/mkfs.ext4")
    with open(image, "wb") as file:
        file.truncate(size)
    subprocess.run(["/sbin/mkfs.ext4", "-q", "-m", "0", image], check=True)


def least_memory():
    return f"{32 * len(os.sched_getaffinity(0))}MiB"


def run(spillway, command, *options, memory=None, before=()):
    """What the command printed and said under `spillway run`, and the report, or None; with the least memory that there may be,
    unless told otherwise ("all": without a limit). `before`: a program that starts it."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.json")
        limits = ["--json", path] if memory == "all" else ["--device-memory", memory or least_memory(), "--json", path]
        done = subprocess.run([*before, spillway, "run", *limits, *options, "--", *command], capture_output=True, text=True, timeout=300)
        return done, read_json(path) if os.path.exists(path) else None


def without_times(printed):
    return [line.partition(" seconds")[0] for line in printed.splitlines()]


def train(spillway, memory, policy, folder, name, *arguments, options=()):
    """The lines that the script printed, without its times, and the report."""
    command = [sys.executable, os.path.join(folder, name), *arguments]
    done, report = run(spillway, command, "--policy", policy, *options, memory=memory)
    check(done.returncode == 0, done.stderr)
    return without_times(done.stdout), report


def half_of(report):
    return f"{report['peak_device_bytes'] // 2 >> 20}MiB"
