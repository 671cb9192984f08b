"""Write README's table of figures from what `benchmarks.peers` has measured.

    python -m benchmarks.peers.readme

`measured.json` beside this module is what `--output` has written in one run. A unit test holds
README to it, so no figure there is typed by hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.workloads import KAFKA_STREAMS, LOOP, MILLRACE, TRANSACTIONAL, WAYS

MEASURED = Path(__file__).with_name("measured.json")
README = Path(__file__).parents[2] / "README.md"
BEGIN, END = "<!-- figures -->", "<!-- /figures -->"
_TITLES = {
    LOOP: "by hand",
    MILLRACE: "Millrace",
    KAFKA_STREAMS: "Kafka Streams",
    TRANSACTIONAL: "Kafka Streams, transactional stores",
}
_COLD = (
    " A JVM goes on compiling for seconds: with few records Kafka Streams' figures are those of a "
    "cold one."
)


def read_measured(path: Path = MEASURED) -> dict[str, Any]:
    """Read a file that `benchmarks.peers` has written with `--output`."""
    measured: dict[str, Any] = json.loads(path.read_text())
    return measured


def create_markdown(measured: Mapping[str, Any]) -> str:
    """Create the paragraph and the table of measured figures for README."""
    figures = measured["figures"]
    ways = [way for way in WAYS if any(each["way"] == way for each in figures)]
    peers = [way for way in ways if way != MILLRACE]
    intro = (
        f"{measured['title']}. Kafka and Kafka Streams {measured['kafka']}. "
        f"Measured on {measured['day']} on {measured['cores']} cores of "
        f"{measured['cpu']}, commit {measured['commit']}. In thousand records a second, in "
        "brackets the application's processor seconds for a million records; MB is the peak "
        f"memory of Millrace's process.{_COLD if KAFKA_STREAMS in ways else ''}"
    )
    ratios = [f"{what}, to {_TITLES[way]}" for what in ("rate", "CPU") for way in peers]
    header = ["workload", *(_TITLES[way] for way in ways), *ratios, "MB"]
    lines = ["| " + " | ".join(header) + " |", "|---|" + "---:|" * (len(header) - 1)]
    lines += ["| " + " | ".join(row) + " |" for row in _create_rows(figures, ways, peers)]
    return "\n".join([intro, "", *lines])


def replace_figures(text: str, markdown: str) -> str:
    """Return a page with what is between the markers replaced. Raises ValueError without them."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN} followed by {END}")
    return f"{before}{BEGIN}\n{markdown}\n{END}{after}"


def _create_rows(
    figures: Sequence[Mapping[str, Any]], ways: Sequence[str], peers: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    by_workload: dict[str, dict[str, Mapping[str, Any]]] = {}
    for each in figures:
        by_workload.setdefault(each["workload"], {})[each["way"]] = each
    for workload, found in by_workload.items():
        ours = found.get(MILLRACE)
        yield (
            workload,
            *(_format_way(found.get(way)) for way in ways),
            *(
                _format_ratio(ours, found.get(way), unit)
                for unit in ("records_per_s", "cpu_s_per_million")
                for way in peers
            ),
            "" if ours is None else f"{ours['peak_mb']:,.0f}",
        )


def _format_way(figures: Mapping[str, Any] | None) -> str:
    if figures is None:
        return ""
    return f"{figures['records_per_s'] / 1_000:,.0f} ({figures['cpu_s_per_million']:.1f})"


def _format_ratio(
    ours: Mapping[str, Any] | None, theirs: Mapping[str, Any] | None, unit: str
) -> str:
    if ours is None or theirs is None or not theirs[unit]:
        return ""
    return f"{ours[unit] / theirs[unit]:.2f}"


def main() -> None:
    """Replace README's figures by the measured ones."""
    README.write_text(replace_figures(README.read_text(), create_markdown(read_measured())))


if __name__ == "__main__":
    main()
