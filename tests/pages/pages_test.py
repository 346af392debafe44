#!/usr/bin/env python3
"""The pages of `$SPILLWAY show --html` in Chromium without a window: they draw all that is in the file, and nothing fails.

Looks at a timeline and at a trace, narrow and wide, light and dark. `pages_test.py FOLDER` also leaves pictures there, to look at.
"""
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden"
SPILLWAY = os.environ["SPILLWAY"]
EVERYWHERE = ((400, "light"), (400, "dark"), (1600, "light"), (1600, "dark"))
CORNERS = ((400, "light"), (1600, "dark"))
SKIPPED = 77
failed = []


def check(holds, what):
    if not holds:
        failed.append(what)
        print(f"wrong: {what}")


def spillway(*arguments):
    subprocess.run([SPILLWAY, *map(str, arguments)], check=True, capture_output=True, text=True, cwd=GOLDEN)


def chromium(browser, page, home, *arguments):
    """What it says on its standard output; complaints of the page's scripts are wrong."""
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=2000",
                           f"--user-data-dir={home}", "--enable-logging=stderr", *arguments, page.as_uri()], capture_output=True, text=True, timeout=120)
    for line in done.stderr.splitlines():
        check("CONSOLE" not in line, f"{page.name}: {line}")
    return done.stdout


def lines_of(timeline):
    """How many lines of each kind a timeline has: by the first key."""
    counts = {}
    for line in timeline.read_text().splitlines():
        first = re.match(r'\{"(\w+)"', line)[1]
        counts[first] = counts.get(first, 0) + 1
    counts["stall"] = sum('"stall":' in line for line in timeline.read_text().splitlines())
    return counts


def probed(page, folder, probe):
    text = page.read_text()
    text = text.replace("<head>", '<head><script>window.pageErrors = []; window.onerror = (what, ...where) => window.pageErrors.push(what + where);</script>', 1)
    at = text.rindex("</script>")
    path = folder / f"probed-{page.name}"
    path.write_text(f"{text[:at]}\n{(HERE / probe).read_text()}{text[at:]}")
    return path


def frame(page, width):
    """A window is at least 500 pixels wide, a frame is not. What a probe has seen, it tells the page around it."""
    path = page.with_name(f"framed-{width}-{page.name}")
    path.write_text('<!doctype html><meta name="color-scheme" content="light dark"><body style="margin:0">'
                    "<script>onmessage = (told) => document.body.append(Object.assign(document.createElement('pre'), { id: 'probe', textContent: told.data }));"
                    f'</script><iframe src="{page.name}" style="border:0;width:{width}px;height:2400px"></iframe>')
    return path


def look_at(browser, page, expected, folder, pictures, probe, also, where=CORNERS):
    """Counts that the page has and draws are as expected at each width in both schemes; `also` looks at what else the probe has seen."""
    for width, scheme in where:
        what = f"{page.name}, {width} pixels, {scheme}"
        arguments = [f"--window-size={width},2400", f"--blink-settings=preferredColorScheme={int(scheme == 'light')}"]
        dom = chromium(browser, frame(probed(page, folder, probe), width), folder / "home", *arguments, "--dump-dom")
        found = re.search(r'<pre id="probe">(.*?)</pre>', dom, re.S)
        if not found:
            check(False, f"{what}: the page's script has not ended")
            continue
        seen = json.loads(html.unescape(found[1]))
        check(seen["errors"] == [], f"{what}: {seen['errors']}")
        check(seen["width"] == width, f"{what}: it is {seen['width']} pixels wide")
        check(seen["dark"] == (scheme == "dark"), f"{what}: it is drawn in the other colours")
        for when in ("data", "drawn", "whole_again"):
            if when in seen:
                check({key: seen[when][key] for key in expected} == expected, f"{what}, {when}: it has {seen[when]}, the file {expected}")
        if "zoomed" in seen:
            check(0 < seen["zoomed"]["kernels"] < expected["kernels"], f"{what}: zoomed it draws {seen['zoomed']}")
            check(seen["panned"], f"{what}: an arrow key does not pan")
        check(not seen["too_wide"], f"{what}: it is wider than the window")
        check(seen["unnamed"] == 0, f"{what}: {seen['unnamed']} controls have no name")
        also(what, seen)
        if pictures:
            chromium(browser, frame(page, width), folder / "home", *arguments, f"--screenshot={pictures / f'{page.stem}-{width}-{scheme}.png'}")


def drawn_in(events):
    """How many kernels, transfers and waits are among trace events."""
    kinds = [one["cat"] for one in json.loads(events.read_text())["traceEvents"] if one["ph"] in "Xi" and one["cat"] != "mark"]
    return {"kernels": sum(one not in ("transfer", "wait") for one in kinds), "transfers": kinds.count("transfer"), "waits": kinds.count("wait")}


def details(expected, capacity=None, says=""):
    """What only the page of one iteration has: the life of a tensor, what is at the cursor, tables."""
    def also(what, seen):
        check(says in seen["notes"], f"{what}: it does not say {says!r}, but {seen['notes']!r}")
        check(capacity is None or 0 < seen["fullest"] <= capacity, f"{what}: the device of {capacity} bytes has {seen['fullest']}")
        check(seen["life_title"].startswith("The life of ") and seen["life_rows"] > 1 and seen["life_lane"], f"{what}: no life of a tensor: {seen}")
        check(seen["clicked"].startswith("Kernel "), f"{what}: a click on a kernel shows {seen['clicked']!r}")
        check("In use: device" in seen["cursor"], f"{what}: at the cursor is {seen['cursor']!r}")
        check(seen["table_rows"] == min(100, expected["kernels"]), f"{what}: the table has {seen['table_rows']} rows")
        check(seen["wait_causes"] == expected["waits"], f"{what}: {seen['wait_causes']} waits by cause, not {expected['waits']}")
    return also


def of_run(what, seen):
    check(seen["threads"] > 1 and seen["marks"] > 0, f"{what}: it has {seen['threads']} threads and {seen['marks']} marks")


def of_report(report):
    def also(what, seen):
        check(f"Iteration {len(report['iterations']) - 1}" in seen["cursor"], f"{what}: at the cursor is {seen['cursor']!r}")
        check(seen["lanes"] == ["Time", "To the device", "From the device", "Page faults"], f"{what}: it has the lanes {seen['lanes']}")
        check(seen["phases"] == len(report["phases"]), f"{what}: its table has {seen['phases']} phases")
        check(report["advice"]["sentence"][1:] in seen["notes"], f"{what}: it says {seen['notes']!r}")
        check("<b>small</b>" in seen["notes"] and seen["bold"] == 0, f"{what}: foreign text is taken for markup")
    return also


def rows(count):
    def also(what, seen):
        check(seen["rows"] == count, f"{what}: its table has {seen['rows']} rows, not {count}")
        check(seen["cursor_rows"] > 0, f"{what}: nothing is said of the cursor")
    return also


def main():
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        print("skipped: chromium is not installed (apt-get install chromium)")
        return SKIPPED
    pictures = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory(prefix="spillway-pages-") as name:
        folder = Path(name)
        timeline, trace = folder / "six.timeline", GOLDEN / "six_layers.trace"
        spillway("simulate", trace, "--policy", "g10", "--machine", "a100", "--set", "device.memory=2GiB", "--timeline", timeline)
        spillway("show", timeline, "--html", folder / "timeline.html", "--perfetto", folder / "six.json")
        spillway("show", trace, "--html", folder / "trace.html")
        counts = lines_of(timeline)
        events = json.loads((folder / "six.json").read_text())["traceEvents"]
        slices = sum(one["ph"] in "Xi" for one in events)
        check(slices == counts["kernel"] + counts["transfer"] + counts["stall"], f"trace events: {slices} slices for {counts}")
        check(counts["stall"] > 0 and counts["transfer"] > 0, f"nothing waits in the example: {counts}")
        expected = {"kernels": counts["kernel"], "transfers": counts["transfer"], "waits": counts["stall"], "levels": counts["level"]}
        look_at(browser, folder / "timeline.html", expected, folder, pictures, "probe.js", details(expected, capacity=2 << 30), EVERYWHERE)
        kernels = len(json.loads(trace.read_text())["kernels"])
        expected = {"kernels": kernels, "transfers": 0, "waits": 0}
        look_at(browser, folder / "trace.html", expected, folder, pictures, "probe.js", details(expected))
        spillway("plan", trace, "--policy", "g10", "--machine", "a100", "--set", "device.memory=2GiB", "-o", folder / "six.plan")
        spillway("show", folder / "six.plan", "--trace", trace, "--html", folder / "plan.html", "--perfetto", folder / "plan.json")
        expected = drawn_in(folder / "plan.json")
        check(expected["transfers"] > 0 and expected["waits"] == 0, f"nothing is planned: {expected}")
        look_at(browser, folder / "plan.html", expected, folder, pictures, "probe.js", details(expected, says="as if no kernel waited"))
        journal = HERE.parents[1] / "fuzz/corpus/journal/random_run.journal"
        spillway("show", journal, "--html", folder / "run.html", "--perfetto", folder / "run.json")
        expected = drawn_in(folder / "run.json")
        check(expected["kernels"] > 10 and expected["transfers"] > 0, f"nothing happens in the journal: {expected}")
        look_at(browser, folder / "run.html", expected, folder, pictures, "probe.js", of_run)
        report = json.loads((HERE / "report.json").read_text())
        spillway("show", HERE / "report.json", "--html", folder / "report.html")
        look_at(browser, folder / "report.html", {"iterations": len(report["iterations"])}, folder, pictures, "report_probe.js", of_report(report))
        spillway("compare", trace, "--machine", "a100", "--set", "device.memory=1GiB", "--policies", "ideal,uvm,g10-gds", "--html", folder / "compare.html")
        look_at(browser, folder / "compare.html", {"runs": 2, "kernels": 2 * kernels}, folder, pictures, "compare_probe.js", rows(3))
    print(f"{len(failed)} wrong" if failed else "the pages show what is in their files")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
