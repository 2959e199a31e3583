"""Prints the results of `cargo xtask bench` as tables in Markdown, and draws their chart.

Exits with 1 if a turn failed.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import sys
from collections.abc import Iterable

import chart
from rows import ROWS, Row
from samples import Samples, number

NAMES = {
    "cellblock": "Cellblock",
    "python": "`python -c`",
    "bwrap": "`bwrap` + python",
    "runsc": "`runsc do` + python",
    "ipykernel": "ipykernel",
    "provider": "the provider alone",
}
HEAD = """\
| what | p50 | p99 | n | peers (multiple of ours) | floor (ours as a multiple) | promise | kept |
|---|---|---|---|---|---|---|---|
"""
CIRCUMSTANCES = (
    "{cpus} CPUs ({cpu}), {memory_mib} MiB, Linux {kernel}; Python {python}; bwrap: {bwrap}; runsc: {runsc}; "
    "commit {commit}; load {load} at the start; `{command}`, {seconds} s, {date}."
)


def row_of(series: str) -> Row:
    """Returns a row with the unit of any series."""
    what = series.split("/", 1)[-1]
    for row in ROWS:
        if row.series == what or series in row.peers or series in row.floor:
            return row
    if what.startswith(("total_", "template_", "launcher_")):
        return Row(what, what, unit="MiB")
    return Row(what, what, unit="KiB" if what.startswith("idle_") else "ms")


def shown(value: float | None, row: Row) -> str:
    """Returns a value of a row for people."""
    if value is None:
        return "–"
    text = f"{number(value)}{'' if row.unit in ('', '×') else ' '}{row.unit}"
    return text if row.megabytes is None else f"{text}, {number(row.megabytes / value * 1000)} MB/s"


def times(first: float | None, second: float | None, row: Row) -> float | None:
    """Returns how many times worse the first value is than the second; a ratio to nothing is none."""
    if first is None or second is None:
        return None
    worse, better = (second, first) if row.unit == "/s" else (first, second)
    return worse / better if better and math.isfinite(worse / better) else None


def floors(row: Row, samples: Samples) -> float | None:
    """Returns our value as a multiple of the floor: 1 would be as good as can be."""
    return times(samples.ours(row.series), samples.sum(row.floor), row)


def times_better(row: Row, peer: str, samples: Samples) -> float | None:
    """Returns the factor by which we are better than a peer: below 1 the peer is better."""
    return times(samples.median(peer), samples.ours(row.series), row)


def best_throughput(samples: Samples) -> str | None:
    """Returns the series of the width with the most rounds in a second."""
    widths = [(value, row.series) for row in ROWS if row.best and (value := samples.ours(row.series)) is not None]
    return max(widths, key=lambda it: it[0])[1] if widths else None


def promises(row: Row, samples: Samples) -> Iterable[tuple[str, bool]]:
    """Lists the promises of a row that can be judged, and whether they are kept.

    A promise is left out if it is another row's to keep, or if what it needs was not measured.
    """
    value = samples.ours(row.series)
    if value is None:
        return
    plain = Row(row.series, row.what, row.unit)
    if row.most is not None:
        yield f"≤ {shown(row.most, plain)}", value <= row.most
    if row.best is not None and best_throughput(samples) == row.series:
        yield f"≥ {shown(row.best, plain)} at the best", value >= row.best
    if row.floors is not None and (ratio := floors(row, samples)) is not None:
        yield f"≤ {row.floors}× the floor", ratio <= row.floors
    if row.sooner is not None:
        peer = next(it for it in row.peers if it.startswith("ipykernel/"))
        if (ratio := times_better(row, peer, samples)) is not None:
            yield f"≥ {row.sooner}× sooner than ipykernel", ratio >= row.sooner


def line(row: Row, samples: Samples) -> str:
    """Returns the table's line of a row."""
    series = f"cellblock/{row.series}"
    peers = [
        f"{NAMES[peer.split('/')[0]]} {shown(samples.median(peer), row)} ({number(ratio)}×)"
        for peer in row.peers
        if (ratio := times_better(row, peer, samples)) is not None
    ]
    ratio = floors(row, samples)
    floor = "" if ratio is None else f"{shown(samples.sum(row.floor), row)} ({number(ratio)}×)"
    judged = list(promises(row, samples))
    cells = [
        row.what,
        shown(samples.median(series), row),
        shown(samples.quantile(series, 0.99), row),
        str(samples.count(series)),
        ", ".join(peers),
        floor,
        ", ".join(promise for promise, _ in judged),
        ", ".join("yes" if kept else "NO" for _, kept in judged),
    ]
    return f"| {' | '.join(cells)} |\n"


def markdown(results: dict) -> str:
    """Returns the table of rows, that of all series of peers and floors, and what is missing."""
    samples = Samples(results["samples"])
    text = HEAD + "".join(line(row, samples) for row in ROWS if samples.ours(row.series) is not None)
    text += "\n| peer or floor | p50 | p99 | n |\n|---|---|---|---|\n"
    for series in samples.series():
        who, _, what = series.partition("/")
        if who != "cellblock":
            row = row_of(series)
            median, high = (shown(samples.quantile(series, part), row) for part in (0.5, 0.99))
            text += f"| {NAMES.get(who, 'floor')}: {what.replace('_', ' ')} | {median} | {high} | {samples.count(series)} |\n"
    made = {name: "none" if value is None else value for name, value in results["circumstances"].items()}
    text += f"\n{CIRCUMSTANCES.format_map(made)}\n"
    text += "".join(f"Missing: {who}: {why}\n" for who, why in results["missing"].items())
    return text + "".join(f"FAILED: {failure}\n" for failure in results["failures"])


def main() -> None:
    """Prints and draws."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("bench/results/latest.json"))
    parser.add_argument("--chart", type=pathlib.Path, default=pathlib.Path("docs/bench.svg"))
    args = parser.parse_args()
    try:
        results = json.loads(args.results.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        sys.exit(f"cannot read the results in `{args.results}`: {error}")
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    print(markdown(results))
    try:
        args.chart.write_text(chart.svg(Samples(results["samples"])), encoding="utf-8")
    except OSError as error:
        sys.exit(f"cannot draw `{args.chart}`: {error}")
    # They are in the report; a script should notice too.
    sys.exit(1 if results["failures"] else 0)


if __name__ == "__main__":
    main()
