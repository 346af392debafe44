#!/usr/bin/env python3
"""`$SPILLWAY reproduce` from outside: a made-up trace in place of BERT's, and G10's own traces where ../shared/g10 has them."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path

HERE = Path(__file__).resolve().parent
SPILLWAY = os.environ["SPILLWAY"]
DOCS = HERE.parents[1] / "docs"
G10 = HERE.parents[1].parent / "shared/g10"
VOID = {"meta", "link", "br", "hr", "img", "input"}


class Tags(HTMLParser):
    """Every tag is closed, and every link within the page leads somewhere."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links = [], set(), set()
        self.feed(text)
        assert not self.open, self.open
        assert self.links <= self.ids, self.links - self.ids

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag not in VOID:
            self.open.append(tag)
        if "id" in attributes:
            assert attributes["id"] not in self.ids, attributes
            self.ids.add(attributes["id"])
        if attributes.get("href", "").startswith("#"):
            self.links.add(attributes["href"][1:])

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


def run(*arguments, status=0):
    done = subprocess.run([SPILLWAY, "reproduce", *map(str, arguments)], capture_output=True, text=True, timeout=250)
    assert done.returncode == status, (done.returncode, done.stderr)
    assert (done.stderr == "") == (status == 0), done.stderr
    return done.stdout or done.stderr


def check_page(page):
    text = page.read_text()
    Tags(text)
    assert "<script" not in text and not re.search(r'(src|href)="(?!#)', text), "it needs nothing else"
    assert "nan" not in re.sub(r"[a-z]*nan[a-z]+|[a-z]+nan", "", text), "a number that is none"
    return text


def made_up(folder):
    traces, cache, page = folder / "traces", folder / "cache", folder / "g10.html"
    traces.mkdir()
    shutil.copy(HERE / "six_layers.trace", traces / "BERT-256.trace")
    arguments = ("g10", "--figure", "11", "--traces", traces, "--cache", cache, "--jobs", 2)
    first = json.loads(run(*arguments, "--json", "--out", page))
    assert first["absent_models"] == ["ViT-1280", "Inceptionv3-1536", "ResNet152-1280", "SENet154-1024"], first["absent_models"]
    assert first["simulated"] > 0 and first["from_cache"] == 0
    assert {one["verdict"] for one in first["claims"]} <= {"holds", "holds in part", "does not hold", "not judged"}
    series = first["figures"][0]["series"]
    ideal = [one["points"][0]["ours"] for one in series if one["policy"] == "ideal"]
    assert ideal == [100], ideal
    again = json.loads(run(*arguments, "--json"))
    assert again["simulated"] == 0 and again["from_cache"] == first["simulated"], (again["simulated"], again["from_cache"])
    assert again["claims"] == first["claims"] and again["figures"] == first["figures"], "the cache changes nothing"
    shutil.copy(HERE / "six_layers.trace", folder / "mine.trace")
    assert "it would be lost" in run("g10", "--figure", "11", "--traces", traces, "--out", folder / "mine.trace", status=2)
    table = run(*arguments)
    assert re.search(r"^BERT-256 +here +", table, re.M) and "Figure 11" in table and "Figure 12" not in table, table
    text = check_page(page)
    assert "BERT-256" in text and 'id="figure-11"' in text and "<title>G10, here: " in text
    everything = json.loads(run("g10", "--traces", traces, "--cache", cache, "--json", "--out", page))
    assert [one["figure"] for one in everything["figures"]][:4] == ["2", "3", "4", "11"]
    assert all(one["reason"] for one in everything["claims"] if one["verdict"] in ("holds in part", "does not hold"))
    check_page(page)
    assert "no figure 99" in run("g10", "--figure", 99, "--traces", traces, status=2)
    assert "no paper 'g11'" in run("g11", "--traces", traces, status=2)
    assert "no table 9" in run("g10", "--table", 9, "--traces", traces, status=2)
    assert "kernels.config" in run("g10", "--traces", cache, status=1)
    assert "--cache" in run("g10", "--traces", traces, "--cache", traces / "BERT-256.trace/no", status=1)
    scaled(folder, traces, arguments)


# Times that are stretched come before those of the roofline, which have a figure of their own.
def scaled(folder, traces, arguments):
    text = (HERE / "six_layers.trace").read_text().replace('"version":1', '"version":3,"estimated":"roofline, a100"', 1)
    (traces / "scaled").mkdir()
    (traces / "scaled/BERT-256.trace").write_text(text.replace("a100", "a100, scaled to 1 s"))
    (traces / "BERT-256.trace").write_text(text)
    both = json.loads(run(*arguments, "--json"))
    assert all(one["estimated_times"] for one in both["traces"])
    paths = {one["model"]: one["trace"] for one in both["traces"]}
    assert paths == {"BERT-256": str(traces / "scaled/BERT-256.trace"), "BERT-256, roofline": str(traces / "BERT-256.trace")}, paths
    figures = {one["figure"]: one for one in both["figures"]}
    assert list(figures) == ["11", "11b"] and {one["model"] for one in figures["11b"]["series"]} == {"BERT-256, roofline"}
    (traces / "BERT-256.trace").write_text((HERE / "six_layers.trace").read_text())
    measured = {one["model"]: one["trace"] for one in json.loads(run(*arguments, "--json"))["traces"]}
    assert measured == {"BERT-256": str(traces / "BERT-256.trace")}, "measured times come first, and are no roofline's"
    (traces / "BERT-256.trace").write_text(text)
    more = folder / "more"
    more.mkdir()
    (more / "ViT-1280.trace").write_text(text)
    assert len(json.loads(run(*arguments, "--traces", more, "--json"))["traces"]) == 3, "all folders count"


# Times that are estimates say so wherever they are shown. A figure of speedups has what it compares with.
def estimated(folder):
    traces, page = folder / "dry-runs", folder / "deepum.html"
    traces.mkdir()
    for model in ("BERT-B-29", "GPT-2-XL-16"):
        text = (HERE / "six_layers.trace").read_text().replace('"version":1', '"version":3,"estimated":"roofline, v100-32"', 1)
        (traces / f"{model}.trace").write_text(text)
    arguments = ("deepum", "--traces", traces, "--cache", folder / "cache")
    report = json.loads(run(*arguments, "--json", "--out", page))
    assert all(one["estimated_times"] for one in report["traces"]), report["traces"]
    assert report["notes"] == []
    text = (traces / "BERT-B-29.trace").read_text()
    (traces / "BERT-B-29.trace").write_text(text.replace("v100-32", "a100"))
    notes = json.loads(run(*arguments, "--figure", "9b", "--no-reasons", "--json"))["notes"]
    assert len(notes) == 1 and "another machine (roofline, a100)" in notes[0], notes
    (traces / "BERT-B-29.trace").write_text(text)
    figures = {one["figure"]: one for one in report["figures"]}
    assert set(figures) == {"9a", "9b", "10", "11a", "12", "13", "T3", "T4", "T5a", "T5b", "T7"} and figures["9a"]["estimated_models"] == ["BERT-B-29"]
    speedups = {one["design"]: one["points"][0] for one in figures["9a"]["series"]}
    assert speedups["UM"]["ours"] == 1 and abs(speedups["DeepUM"]["published"] - 135 / 129) < 1e-9, speedups
    assert {one["model"] for one in figures["T3"]["series"]} == {"GPT-2-XL-16"}
    assert "Times are estimates." in check_page(page)
    table = run(*arguments, "--figure", "9a")
    assert "Figure 9a" in table and "Times are estimates." in table and "Table 5" not in table, table
    assert "traces.py deepum" in run("deepum", "--traces", folder / "cache", status=1)


# Several jobs, cold starts and budgets of another policy; what depends on what is assumed.
def several_jobs(folder):
    traces, page = folder / "networks", folder / "tensile.html"
    traces.mkdir()
    text = (HERE / "six_layers.trace").read_text().replace('"version":1', '"version":3,"estimated":"roofline, a6000"', 1)
    for network in ("VGG-16", "Inceptionv3", "Inceptionv4", "ResNet-50", "DenseNet-121"):
        (traces / f"{network}.trace").write_text(text)
    arguments = ("tensile", "--traces", traces, "--cache", folder / "cache")
    report = json.loads(run(*arguments, "--json", "--sensitivity", "--out", page))
    figures = {one["figure"]: one for one in report["figures"]}
    assert set(figures) == {"2", "T1", "T2", "T3", "6a", "6b", "6c", "T4", "7a", "7b"}, set(figures)
    assert {one["model"] for one in figures["T4"]["series"]} == {"five networks"}
    assert len(report["absent_models"]) == 20
    claims = {one["id"]: one for one in report["claims"]}
    assert claims["tensile.prediction"]["verdict"] == "not judged"
    of_times = claims["tensile.saves-memory"]["sensitivity"]
    assert [one["assumption"] for one in of_times] == ["estimated kernels take 20 % less", "estimated kernels take 25 % more"], of_times
    assert all(one["flips"] == any(other["verdict"] != one["verdict"] for other in one["sensitivity"]) for one in claims.values())
    assert 'id="sensitivity"' in check_page(page)


def judged(folder):
    report = json.loads(run("g10", "--figure", "11", "--traces", G10, "--no-cache", "--no-reasons", "--json"))
    claims = {one["id"]: one for one in report["claims"]}
    assert claims["g10.near-ideal"]["verdict"] in ("holds", "holds in part"), claims["g10.near-ideal"]
    itself, command = claims["g10.over-deepum"]["command"].split("\n", 1)
    assert itself == f"spillway reproduce g10 --figure 11 --traces {G10}", itself
    done = subprocess.run(["bash", "-ec", command.replace("spillway ", SPILLWAY + " ")], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0 and "deepum" in done.stdout, (command, done.stderr)
    values = {(one["model"], one["policy"]): one["points"][0]["ours"] for one in report["figures"][0]["series"]}
    row = next(line for line in done.stdout.splitlines() if line.startswith("deepum "))
    assert f"{values['BERT-256', 'deepum']:.1f} %" in row, (row, values)
    kept = {(row[0], row[1]): row[4] for row in json.loads((DOCS / "reproduction/g10.json").read_text())["figures"]["11"]}
    ours = {(one["model"], one["design"]): one["points"][0]["ours"] for one in report["figures"][0]["series"]}
    assert {place: kept[place] for place in ours} == ours, "docs/reproduction.md ends with the commands that make its tables again"


def main():
    with tempfile.TemporaryDirectory() as name:
        made_up(Path(name))
        estimated(Path(name))
        several_jobs(Path(name))
        if not G10.is_dir():
            print(f"skipped: G10's own traces, for there is no {G10}")
            return
        judged(Path(name))


if __name__ == "__main__":
    main()
    sys.exit(0)
