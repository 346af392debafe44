"""Remembers that a check passed on exactly these inputs, so that a second run costs nothing."""
import hashlib
import json
from pathlib import Path


def digest(data):
    return hashlib.sha256(data).hexdigest()


class Cache:
    """One small file for each checked file: the command, and the content of all that the check read."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def _file(self, name):
        return self.folder / (digest(str(name).encode())[:32] + ".json")

    def passed(self, name, key):
        try:
            seen = json.loads(self._file(name).read_text())
            return seen["key"] == key and all(digest(Path(p).read_bytes()) == h for p, h in seen["inputs"].items())
        except (OSError, ValueError, KeyError):
            return False

    def remember(self, name, key, inputs):
        hashes = {str(path): digest(Path(path).read_bytes()) for path in inputs}
        self._file(name).write_text(json.dumps({"key": key, "inputs": hashes}))


def inputs_of(make_rule, root):
    """The files of a compiler's -MMD output that belong to the project; the compiler and its headers change together."""
    words = make_rule.replace("\\\n", " ").split()[1:]
    return [path for path in (Path(root, word).resolve() for word in words) if path.is_relative_to(root) and path.is_file()]
