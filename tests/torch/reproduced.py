"""reproduced.py SPILLWAY: docs/reproduction.md shows what `spillway reproduce` finds with traces made here and now."""

import json
import os
import subprocess
import sys
import tempfile

from cases import HERE, check, main, normal, skip

PROJECT = os.path.join(HERE, "..", "..")
LIBRARIES = os.path.join(PROJECT, ".venv", "model-libraries")  # where ./test installs what the scripts import


@normal()
def the_document_shows_what_is_found(spillway):
    if not os.path.isdir(LIBRARIES):
        skip("the libraries of examples/models/requirements.txt are not installed")
    with open(os.path.join(PROJECT, "docs", "reproduction", "tensile.json"), encoding="utf-8") as file:
        kept = {(figure, *row[:3]): row[4] for figure, rows in json.load(file)["figures"].items() for row in rows if row[3] is None}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, os.path.join(PROJECT, "examples", "models", "traces.py"), "tensile", "-o", folder, "--only", "^VGG-16$",
                        "--spillway", spillway], check=True, env={**os.environ, "PYTHONPATH": LIBRARIES}, timeout=250)
        done = subprocess.run([spillway, "reproduce", "tensile", "--traces", folder, "--no-cache", "--no-reasons", "--json"], check=True,
                              capture_output=True, text=True, timeout=250)
    seen = 0
    for figure in json.loads(done.stdout)["figures"]:
        if figure["figure"] not in ("T1", "T3"):
            continue
        for series in figure["series"]:
            place = (figure["figure"], series["model"], series["design"], series["part"])
            check(kept[place] == series["points"][0]["ours"], place, kept[place], series["points"][0]["ours"])
            seen += 1
    check(seen == 6, seen)  # MSR, EOR and CBR, of TENSILE after its update and of vDNN: the others learn from networks that are not there


main()
