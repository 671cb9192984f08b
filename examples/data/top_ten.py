"""Generate songs of three genres, and plays of them, most of which are of a few songs."""

from __future__ import annotations

import random
from collections.abc import Iterator

from examples.data.inputs import START_MS, Input

GENRES = ["fado", "jazz", "punk"]
SONGS, LISTENERS = 300, 500


def records(seed: int, count: int) -> Iterator[Input]:
    """Yield the songs, then `count` plays."""
    chance = random.Random(seed)  # nosec B311 # example data
    for song in range(SONGS):
        row = {"title": f"Song {song}", "genre": GENRES[song % len(GENRES)]}
        yield Input("songs", f"s{song}", row, START_MS - 1_000)
    for number in range(count):
        song = min(int(chance.paretovariate(1.2)) - 1, SONGS - 1)
        listener = f"listener-{chance.randrange(LISTENERS)}"
        yield Input("plays", listener, {"song": f"s{song}"}, START_MS + number * 100)
