"""Which files are ours, and how the build compiles them."""
import json
import re
import shlex
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src", "tests", "bench", "fuzz")


def ours(*suffixes):
    """Every file of ours that ends in one of the suffixes, as paths relative to the root, in a fixed order."""
    return sorted(path.relative_to(ROOT) for folder in FOLDERS for path in (ROOT / folder).rglob("*")
                  if path.suffix in suffixes and path.is_file())


def is_test(file):
    return file.stem.endswith("_test") or file.parts[0] == "tests"


def compile_commands(build):
    """Source file, relative to the root -> what its compiler is told, without input and output. Files that are compiled as one
    (a unity build) are told the same."""
    commands = {}
    for entry in json.loads((Path(build) / "compile_commands.json").read_text()):
        compiled, words, kept = Path(entry["file"]), shlex.split(entry["command"])[1:], []
        while words:
            word = words.pop(0)
            if word == "-o":
                words.pop(0)
            elif word not in ("-c", str(compiled)):
                kept.append(word)
        sources = re.findall(r'^#include "(.*)"$', compiled.read_text(), re.M) if compiled.parent.name == "Unity" else [compiled]
        for source in map(Path, sources):
            if source.suffix != ".S" and source.is_relative_to(ROOT) and not source.is_relative_to(build):
                commands[source.relative_to(ROOT)] = kept
    return commands


def union(commands):
    """The options of several commands, each once; an option keeps the word that follows it (-isystem FOLDER)."""
    options = {}
    for words in commands:
        for at, word in enumerate(words):
            follower = words[at + 1:at + 2]
            if word.startswith("-"):
                options[(word, *(w for w in follower if not w.startswith("-")))] = None
    return [word for option in options for word in option]


def arguments_for_header(header, commands):
    """Headers have no command of their own: take that of the source beside them, or else of one in the nearest folder above, rather one
    that includes it."""
    beside = header.with_suffix(".cpp")
    if beside in commands:
        return commands[beside]
    for folder in header.parents:
        sources = [source for source in sorted(commands) if source.is_relative_to(folder) and source.suffix == ".cpp"]
        including = [source for source in sources if f'/{header.name}"' in (ROOT / source).read_text(encoding="utf-8")]
        if sources:
            return commands[(including or sources)[0]]
    raise SystemExit(f"{header}: the build compiles nothing that tells how to compile it; build first")
