#!/usr/bin/env python3
"""docs/options.md has the options that the program has: options_test.py SPILLWAY

Each command has a section of its name, and each row of its first table begins with an option as `--help` spells it.
"""
import re
import subprocess
import sys
from pathlib import Path

OPTIONS = Path(__file__).resolve().parents[2] / "docs/options.md"


def help_of(spillway, *command):
    return subprocess.run([spillway, *command, "--help"], capture_output=True, text=True, check=True).stdout


def sub_commands(help_text):
    listed = re.search(r"^Subcommands:\n((?:  .*\n)+)", help_text, re.M)
    return re.findall(r"^  ([\w-]+)", listed[1], re.M) if listed else []


def options(help_text):
    """Of the lists of options alone: the examples below them name options of other commands, too."""
    return set(re.findall(r"^ +(?:-\w,)?(--[\w-]+)", help_text, re.M))


def options_of(spillway, *command):
    help_text = help_of(spillway, *command)
    return options(help_text).union(*(options_of(spillway, *command, sub) for sub in (sub_commands(help_text) if command else [])))


def documented(document):
    """Options by section."""
    sections = re.split(r"^## (.*)\n", document, flags=re.M)[1:]
    return {name: set(re.findall(r"^\| `(--[\w-]+)", text, re.M)) for name, text in zip(sections[::2], sections[1::2])}


def main():
    spillway = sys.argv[1]
    commands = {"spillway": options_of(spillway)}
    commands |= {command: options_of(spillway, command) for command in sub_commands(help_of(spillway))}
    known, wrong = documented(OPTIONS.read_text(encoding="utf-8")), []
    for command, has in commands.items():
        wrong += [f"`{command}` has {option}, and its section in docs/options.md has not" for option in sorted(has - known.get(command, set()))]
        wrong += [f"`{command}` has no {option}, which its section in docs/options.md has" for option in sorted(known.get(command, set()) - has)]
    if len(commands) < 2 or any("--help" not in has for has in commands.values()):
        wrong.append(f"`spillway --help` could not be understood: {commands}")
    print("\n".join(wrong) if wrong else f"docs/options.md has all {sum(map(len, commands.values()))} options")
    sys.exit(bool(wrong))


main()
