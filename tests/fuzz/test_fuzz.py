"""Test a few steps of each fuzz target, always the same: `make fuzz` runs others for a time."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.wire.frames import FrameReader
from tests.fuzz.targets import TARGETS
from tests.fuzz.victim import Found

STEPS = {"requests": 6_000, "batches": 1_000, "records": 4_000, "frames": 2_000}


@pytest.fixture(autouse=True)
def _refusals_are_not_shown() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", [1])
def test_hostile_bytes_are_refused_and_nothing_breaks(target: str, seed: int) -> None:
    random = Random(seed)
    with TARGETS[target]() as step:
        for _ in range(STEPS[target]):
            step(random)


@pytest.mark.parametrize("target", TARGETS)
def test_what_hypothesis_finds_is_as_short_as_can_be(target: str) -> None:
    with TARGETS[target]() as step:

        @settings(max_examples=200, deadline=None, derandomize=True, database=None)
        @given(st.randoms(use_true_random=False))
        def steps(random: Random) -> None:
            step(random)

        steps()


@pytest.mark.parametrize("lost", ["a byte of a piece", "a frame"])
def test_frames_that_come_out_wrong_are_found(lost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original = FrameReader.read_frames

    def feed(self: FrameReader, data: bytes) -> Iterator[bytes]:
        frames = list(original(self, data))
        if lost == "a frame":
            yield from frames[:-1]
        else:
            yield from (frame[:-1] + b"?" for frame in frames)

    monkeypatch.setattr(FrameReader, "read_frames", feed)
    with TARGETS["frames"]() as step, pytest.raises(Found, match="came out as"):
        all(step(Random(seed)) is None for seed in range(100))
