"""Read real text: the lines of the Python standard library's own source, as `make demo` does."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from examples.data.inputs import START_MS, Input
from examples.demo.corpus import read_lines


def records(seed: int, count: int) -> Iterator[Input]:
    """Yield `count` lines, which are the same for every seed."""
    for number, line in enumerate(islice(read_lines(), count)):
        yield Input("lines", line.file, line.text, START_MS + number)
