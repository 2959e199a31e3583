"""Draws the samples of `growth.py` with matplotlib: how cost grows with the work, one panel for each series.

Both axes are logarithmic, so that cost in proportion to the work is parallel to the gray lines. Needs matplotlib.
"""

import argparse
import json
import pathlib

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

PANELS = [
    ("sessions", "idle sessions", "MiB of all sandboxes", ["pages_mib", "page_tables_mib", "stacks_mib"]),
    ("sessions", "idle sessions", "processor time, ms", ["cell_cpu_ms", "session_cpu_ms"]),
    ("outputs", "outputs of a cell", "processor time, ms", ["cpu_ms"]),
    ("inputs", "bytes of an input", "processor time, ms", ["cpu_ms"]),
    ("history", "cells before this one", "processor time, ms", ["cpu_ms"]),
    ("records", "files of the caller", "processor time, ms", ["get_cpu_ms", "list_cpu_ms", "upload_cpu_ms"]),
]
LABELS = {
    "pages_mib": "pages",
    "page_tables_mib": "page tables",
    "stacks_mib": "kernel stacks",
    "cell_cpu_ms": "a cell in one of them",
    "session_cpu_ms": "one more session",
    "cpu_ms": "one request",
    "get_cpu_ms": "get one",
    "list_cpu_ms": "list 20",
    "upload_cpu_ms": "upload one",
}


def main() -> None:
    """Draws."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", type=pathlib.Path, default=pathlib.Path("bench/results/growth.json"))
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("docs/growth.svg"))
    args = parser.parse_args()
    measured = json.loads(args.input.read_text())
    # Equal samples give an equal file.
    plt.rcParams.update({"svg.hashsalt": "growth", "font.size": 8, "svg.fonttype": "none"})
    figure, all_axes = plt.subplots(2, 3, figsize=(10, 5.6), layout="constrained")
    for axes, (series, work, unit, lines) in zip(all_axes.flat, PANELS, strict=True):
        points = measured[series]["points"]
        for line in lines:
            axes.plot([it["x"] for it in points], [it[line] for it in points], marker="o", markersize=3, label=LABELS[line])
        axes.set(xscale="log", yscale="log", xlabel=work, ylabel=unit)
        low, high = axes.get_ylim()
        axes.set_ylim(min(low, high / 100), high)
        for decade in range(-6, 7):
            axes.axline((points[0]["x"], 10.0**decade), (points[0]["x"] * 10, 10.0 ** (decade + 1)), color="gray", linewidth=0.3)
        axes.legend(frameon=False)
    figure.savefig(args.output, metadata={"Date": None})


if __name__ == "__main__":
    main()
