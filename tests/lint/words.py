#!/usr/bin/env python3
"""Are the documents easy to read? python3 tests/lint/words.py [FILE ...]; without files: all documents of the project.

A sentence has at most 30 words, a table cell 40, and the sentences of a file have 14 on average. Bullet items and cells are
sentences of their own, headings are none. Code, in a line or in a block, is one word; so is a URL.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LONGEST_SENTENCE, LONGEST_CELL, LONGEST_ON_AVERAGE = 30, 40, 14

FENCE = re.compile(r"\s*(```|~~~)")
ITEM = re.compile(r"\s*([-*+]|\d+[.)])\s+")
CELL_END = re.compile(r"(?<!\\)\|")
SENTENCE_END = re.compile(r"(?<=[.!?])[\"')*_”]*\s+")


def plain(text):
    """What a reader sees of a text, with one word for each piece of code and each URL."""
    text = re.sub(r"(`+).+?\1", "CODE", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"<?https?://\S+", "URL", text)


def count(text):
    return sum(any(letter.isalnum() for letter in word) for word in text.split())


def pieces(lines):
    """(line number, text, whether it is a cell) of each paragraph, bullet item and cell."""
    start, text, fence = 0, "", None
    for number, line in enumerate([*lines, ""], 1):
        opening = FENCE.match(line)
        if fence:
            fence = None if opening and opening[1] == fence else fence
            continue
        is_row, is_item = line.lstrip().startswith("|"), ITEM.match(line)
        if opening and text.endswith(":"):
            text += " CODE"
        if text and (opening or is_row or is_item or not line.strip() or line.startswith("#")):
            yield start, text, False
            text = ""
        if opening:
            fence = opening[1]
        elif is_row:
            for cell in CELL_END.split(re.sub(r"`[^`]*`", "CODE", line).strip().strip("|")):
                yield number, cell, True
        elif not line.startswith("#"):
            start = start if text else number
            text = f"{text} {line[is_item.end():] if is_item else line}".strip()


def look_at(name, document):
    """What is wrong with a document, one line for each finding."""
    wrong, lengths = [], []
    for number, text, is_cell in pieces(document.splitlines()):
        text = plain(text)
        if is_cell and count(text) > LONGEST_CELL:
            wrong.append(f"{name}:{number}: a cell of {count(text)} words, {LONGEST_CELL} are the most: {text.strip()}")
        for sentence in filter(count, SENTENCE_END.split(text)):
            lengths.append(count(sentence))
            if lengths[-1] > LONGEST_SENTENCE:
                wrong.append(f"{name}:{number}: a sentence of {lengths[-1]} words, {LONGEST_SENTENCE} are the most: {sentence.strip()}")
    mean = sum(lengths) / max(len(lengths), 1)
    if mean > LONGEST_ON_AVERAGE:
        wrong.append(f"{name}: sentences have {mean:.1f} words on average, {LONGEST_ON_AVERAGE} are the most")
    return wrong


def main():
    documents = [Path(name) for name in sys.argv[1:]] or [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    wrong = [line for path in documents
             for line in look_at(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path, path.read_text(encoding="utf-8"))]
    print("\n".join(wrong) if wrong else f"{len(documents)} documents are easy to read")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
