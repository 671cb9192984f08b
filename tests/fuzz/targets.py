"""Define the fuzz targets: each is one step with a `Random` and raises where the broker fails.

A test runs a few steps, always the same; `python -m tests.fuzz` runs them for a time, from a seed
that it prints.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from coordinator.wire.frames import FrameReader, MalformedFrame
from tests.fuzz.batches import hostile_batch
from tests.fuzz.internal import decode_one, open_one, snapshot_one
from tests.fuzz.mutations import mutated
from tests.fuzz.requests import COMPACTED, NAME, about_a_batch
from tests.fuzz.victim import Found, Victim

_HEADER_BYTES = 16  # of the requests of the corpus
_HEADER_SHARE = 0.1  # of the mutations touch it
_FRAME_BYTES_MAX = 1_000

Step = Callable[[Random], None]


@contextmanager
def requests() -> Iterator[Step]:
    """Provide the step that mutates valid requests, header and body."""
    with _victim() as victim:

        def step(random: Random) -> None:
            frame = random.choice(victim.corpus)
            at = 0 if random.random() < _HEADER_SHARE else _HEADER_BYTES
            victim.feed(frame[:at] + mutated(frame[at:], victim.corpus, random))

        yield step


@contextmanager
def batches() -> Iterator[Step]:
    """Provide the step that produces mutated batches and has the broker look into them."""
    with _victim() as victim:

        def step(random: Random) -> None:
            topic = random.choice((NAME, COMPACTED))
            for frame in about_a_batch(topic, hostile_batch(random)):
                victim.feed(frame)

        yield step


@contextmanager
def records() -> Iterator[Step]:
    """Provide the step that feeds the decoders of records and files."""

    def step(random: Random) -> None:
        random.choice((decode_one, open_one, snapshot_one))(random)

    yield step


@contextmanager
def frames() -> Iterator[Step]:
    """Provide the step that sends frames, broken ones among them, to the parser in pieces.

    They come out as they went in, and the parser holds no more than one.
    """

    def step(random: Random) -> None:
        sizes = [random.choice((0, 1, 10, 900)) for _ in range(random.randint(1, 5))]
        sound = b"".join(size.to_bytes(4, "big") + random.randbytes(size) for size in sizes)
        data = mutated(sound, [sound], random) if random.random() < 0.8 else sound
        expected, is_malformed = cut_frames(data)
        reader = FrameReader(_FRAME_BYTES_MAX)
        read: list[bytes] = []
        refused = False
        try:
            while data:
                piece = random.randint(1, 1_000)
                read += reader.read_frames(data[:piece])
                data = data[piece:]
                if reader.held_bytes > _FRAME_BYTES_MAX:
                    raise Found(f"{reader.held_bytes} bytes held for frames of {sizes}")
        except MalformedFrame:
            refused = True
        if read != expected:
            raise Found(f"frames of {sizes} came out as {[len(frame) for frame in read]}")
        if refused != is_malformed:
            raise Found(f"frames of {sizes}: {refused=}, {is_malformed=}")

    yield step


def cut_frames(data: bytes) -> tuple[list[bytes], bool]:
    """Return the whole frames in `data`, and whether a malformed length comes behind them."""
    found, at = list[bytes](), 0
    while len(data) - at >= 4:
        size = int.from_bytes(data[at : at + 4], "big", signed=True)
        if not 0 <= size <= _FRAME_BYTES_MAX:
            return found, True
        if at + 4 + size > len(data):
            break
        found.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return found, False


TARGETS = {"requests": requests, "batches": batches, "records": records, "frames": frames}


@contextmanager
def _victim() -> Iterator[Victim]:
    with tempfile.TemporaryDirectory() as directory, Victim(Path(directory)) as victim:
        yield victim
