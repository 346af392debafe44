#!/usr/bin/env python3
"""Keeps what docs/reproduction.md shows equal to what `spillway reproduce` and `spillway compare` print.

  reproduction.py take NAME < REPORT.json   keeps what the document needs of a report in docs/reproduction/NAME.json
  reproduction.py write                     writes the document's tables anew from these files
  reproduction.py check                     fails where the document has others

docs/reproduction.md says with which commands the reports are made."""

import json
import re
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
DOCUMENT, KEPT = DOCS / "reproduction.md", DOCS / "reproduction"
BLOCK = re.compile(r"(<!-- made by scripts/reproduction\.py: (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.S)
MOST_WORDS = 26  # of what came out, in a cell
G10_MODELS = {"BERT-256": "BERT, batch 256", "ViT-1280": "ViT, batch 1280", "ResNet152-1280": "ResNet152, batch 1280"}
FIGURES = {"g10": {"11", "11b", "15", "19"}, "deepum": {"9b", "13", "T3", "T7"}, "tensile": {"T1", "T3"}}  # whose values are shown, or compared by a test


def trimmed(report):
    """What the document may show of a report."""
    if "results" in report:
        return {"trace": report["trace"]["name"], "machine": report["machine"]["name"],
                "percent_of_ideal": {one["policy"]: one["percent_of_ideal"] for one in report["results"]}}
    figures = {}
    for figure in report["figures"]:
        rows = [[series["model"], series["design"], series["part"], point["x"], point["ours"], point["published"], point["infeasible"]]
                for series in figure["series"] for point in series["points"]]
        if figure["figure"] in FIGURES[report["paper"]]:
            figures[figure["figure"]] = rows
    keys = ("id", "figure", "claim", "published", "verdict", "flips", "sensitivity")
    claims = [{key: claim[key] for key in keys if key in claim} | {
        "statements": [{key: one[key] for key in ("what", "models", "ours", "unit", "holds")} for one in claim["statements"]],
        "reasons": [{"text": one["text"], "explained_share": one["explained_share"]} for one in claim["reasons"]]} for claim in report["claims"]]
    traces = [{key: one[key] for key in ("model", "hash", "estimated_times") if key in one} for one in report["traces"]]
    return {"paper": report["paper"], "traces": traces, "claims": claims, "figures": figures}


def kept(name):
    return json.loads((KEPT / f"{name}.json").read_text())


def number(value, unit=""):
    if value is None:
        return "infeasible"
    digits = 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f}{unit if unit == '×' else f' {unit}' if unit else ''}"


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def values_of(claim):
    """Each statement's values: one, or from the least to the most."""
    by_what = {}
    for one in sorted(claim["statements"], key=lambda one: one["holds"]):  # What fails comes first: the cell may be cut.
        by_what.setdefault((one["what"], one["unit"]), []).append(one)
    texts = []
    for (what, unit), ones in by_what.items():
        values = sorted({one["ours"] for one in ones if one["ours"] is not None})
        if len(ones) == 1:
            text = f"{number(ones[0]['ours'], unit)} ({ones[0]['models']})"
        elif not values:
            text = "infeasible"
        elif number(values[0], unit) == number(values[-1], unit):
            text = number(values[0], unit)
        else:
            text = f"{number(values[0])}–{number(values[-1], unit)}"
        if len(ones) > 1 and any(one["ours"] is None for one in ones):
            text += ", or infeasible"
        texts.append(f"{what}: {text}")
    text = "; ".join(texts)
    words = text.split(" ")
    return text if len(words) <= MOST_WORDS else " ".join(words[:MOST_WORDS]).rstrip(";,") + " …"


def heading(figure):
    return f"table {figure[1:]}" if figure.startswith("T") else f"section {figure}" if "." in figure or figure[0] == "I" else f"figure {figure}"


def verdicts(name):
    claims = kept(name)["claims"]
    counts = [f"{verdict}: {sum(one['verdict'] == verdict for one in claims)}" for verdict in ("holds", "holds in part", "does not hold", "not judged")]
    rows = [[claim["claim"], heading(claim["figure"]), claim["published"].split("; of those at hand")[0], values_of(claim), claim["verdict"] + (" ⚠" if claim.get("flips") else "")]
            for claim in claims if claim["verdict"] != "not judged"]
    text = f"Verdicts of {len(claims)} claims: {'; '.join(counts)}.\n\n" + table(["claim", "where", "published", "here", "verdict"], rows)
    flips = [f"- {claim['claim']} {one['verdict'].capitalize()} if {one['assumption']}." for claim in claims for one in claim.get("sensitivity", [])
             if one["verdict"] != claim["verdict"]]
    if any("sensitivity" in claim for claim in claims):
        text += "\n" + ("⚠: the verdict is another one under another assumption:\n\n" + "\n".join(flips) + "\n" if flips else "No verdict changes under another assumption.\n")
    shares = {}
    for claim in claims:
        for one in claim["reasons"]:
            if one["explained_share"] is not None:
                shares.setdefault(one["text"], set()).add(f"{100 * one['explained_share']:.0f} %")
    if shares:
        text += "\nWhat experiments explain of the difference to what was published. Below 0 it grows:\n\n"
        text += table(["reason", "part of a claim's difference"], [[reason, ", ".join(sorted(parts, key=lambda one: -int(one[:-2])))] for reason, parts in shares.items()])
    return text


def policies():
    reports = {model: kept(f"policies-{model}")["percent_of_ideal"] for model in G10_MODELS}
    published = {(row[0], row[1]): row[5] for row in kept("g10")["figures"]["11"]}
    designs = {"uvm": "Base UVM", "uvm:pool=1": "Base UVM", "flashneuron": "FlashNeuron", "deepum": "DeepUM+", "deepum-faults": "DeepUM+",
               "deepum-faults:pool=1,invalidate=0": "DeepUM+", "g10-gds": "G10-GDS", "g10-host": "G10-Host", "g10": "G10"}
    rows = []
    for policy in next(iter(reports.values())):
        row = [policy]
        for model, percent in reports.items():
            value = published.get((model, designs.get(policy)))
            row.append("–" if policy not in designs else "fails" if value is None else f"{value:.1f}")
            row.append("infeasible" if percent.get(policy) is None else f"{percent[policy]:.1f}")
        rows.append(row)
    header = ["percent of ideal"] + [text for name in G10_MODELS.values() for text in (f"{name}: published", "here")]
    return table(header, rows)


def by_design(name, figure, models, designs, row_title, unit_digits=1):
    """A figure's values of models, by design: published and here."""
    cells = {(row[0], row[1]): row for row in kept(name)["figures"][figure]}
    rows = []
    for model in models or list(dict.fromkeys(row[0] for row in kept(name)["figures"][figure])):
        row = [model]
        for design in designs:
            _, _, _, _, ours, published, infeasible = cells.get((model, design), (None,) * 7)
            row.append("–" if published is None else f"{published:.{unit_digits}f}")
            row.append("fails" if infeasible else "–" if ours is None else f"{ours:.{unit_digits}f}")
        rows.append(row)
    return table([row_title] + [text for design in designs for text in (f"{design}: published", "here")], rows)


def five_models():
    return by_design("g10", "11", ["Inceptionv3-1536", "SENet154-1024"], ["Base UVM", "FlashNeuron", "DeepUM+", "G10-GDS", "G10-Host", "G10"], "percent of ideal")


def by_roofline():
    """Figure 11 of the same models by the traces that the verdicts are of, and by dry runs with a roofline's times."""
    cells = {(row[0], row[1]): row[4] for figure in ("11", "11b") for row in kept("g10")["figures"][figure]}
    designs = ["Base UVM", "FlashNeuron", "DeepUM+", "G10-GDS", "G10"]
    rows = []
    for model in dict.fromkeys(row[0] for row in kept("g10")["figures"]["11"]):
        values = [cells.get((name, design)) for design in designs for name in (model, f"{model}, roofline")]
        rows.append([model] + ["–" if value is None else f"{value:.1f}" for value in values])
    return table(["percent of ideal"] + [text for design in designs for text in (f"{design}: as above", "roofline")], rows)


def by_batch():
    cells = {(row[0], row[1], row[3]): row for row in kept("g10")["figures"]["15"]}
    designs = ["Base UVM", "FlashNeuron", "DeepUM+", "G10"]
    rows = []
    for model, x in dict.fromkeys((row[0], row[3]) for row in kept("g10")["figures"]["15"]):
        row = [f"{model}, {x:.0f}"]
        for design in designs:
            *_, ours, published, infeasible = cells[model, design, x]
            row += ["–" if published is None else f"{published:.1f}", "fails" if infeasible else f"{ours:.1f}"]
        rows.append(row)
    return table(["percent of ideal"] + [text for design in designs for text in (f"{design}: published", "here")], rows)


def noise():
    rows = {}
    for model, _, _, x, ours, published, _ in kept("g10")["figures"]["19"]:
        rows.setdefault(x, {})[model] = (published, ours)
    return table(["noise"] + [text for name in G10_MODELS.values() for text in (f"{name}: published", "here")],
                 [[f"{x:.0f} %"] + [f"{value:.1f}" if value is not None else "–" for model in G10_MODELS for value in of.get(model, (None, None))]
                  for x, of in sorted(rows.items())])


def deepum_times():
    return by_design("deepum", "9b", [], ["UM", "LMS", "DeepUM", "Ideal"], "seconds of 100 iterations", 0)


def deepum_peaks():
    rows = [[row[0], of, host, f"{row[4]:.0f}"] for figure, of, host in (("T3", "table 3", "512 GB"), ("T7", "table 7", "128 GB"))
            for row in kept("deepum")["figures"][figure] if row[2] == "peak"]
    return table(["largest batch", "of", "host memory", "peak here, GB"], rows)


def deepum_small_card():
    cells = {(row[0], row[1]): row[4] for row in kept("deepum")["figures"]["13"]}
    systems = ["vDNN", "Capuchin", "DeepUM", "Ideal"]
    rows = [[model] + [f"{cells[model, system]:.2f}×" for system in systems] for model in dict.fromkeys(model for model, _ in cells)]
    return table(["faster than unified memory, on 16 GB", *systems], rows)


def tensile_one_job():
    cells = {(row[0], row[2], row[1]): row for row in kept("tensile")["figures"]["T3"]}
    rows = []
    for network in dict.fromkeys(row[0] for row in kept("tensile")["figures"]["T3"]):
        for part in ("MSR", "EOR", "CBR"):
            row = [f"{network}, {part}"]
            for system in ("vDNN", "Capuchin", "TENSILE"):
                row += ["–" if value is None else f"{value:.2f}" for value in (cells[network, part, system][5], cells[network, part, system][4])]
            rows.append(row)
    return table(["network"] + [text for system in ("vDNN", "Capuchin", "TENSILE") for text in (f"{system}: published", "here")], rows)


MADE = {"policies": policies, "g10-verdicts": lambda: verdicts("g10"), "g10-five": five_models, "g10-batches": by_batch, "g10-roofline": by_roofline, "g10-noise": noise,
        "deepum-verdicts": lambda: verdicts("deepum"), "deepum-times": deepum_times, "deepum-peaks": deepum_peaks, "deepum-small-card": deepum_small_card,
        "tensile-verdicts": lambda: verdicts("tensile"), "tensile-one-job": tensile_one_job}


def document():
    return BLOCK.sub(lambda found: found[1] + MADE[found["name"]]() + found[3], DOCUMENT.read_text())


def main():
    match sys.argv[1:]:
        case ["take", name]:
            text = json.dumps(trimmed(json.load(sys.stdin)), ensure_ascii=False, separators=(",", ":"))
            (KEPT / f"{name}.json").write_text(text.replace('{"id"', '\n{"id"').replace('],["', '],\n["') + "\n")
        case ["write"]:
            DOCUMENT.write_text(document())
        case ["check"]:
            if document() != DOCUMENT.read_text():
                sys.exit("docs/reproduction.md has other tables than docs/reproduction/*.json: run scripts/reproduction.py write, and look at what changed")
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
