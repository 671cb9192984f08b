"""Counts words; `bad` becomes a dead letter, `hang` does not end, `brief` and `slow` take a while.

With `SLOW_STANDBYS` in the environment standby tasks follow their changelogs record by record, and
with `SLOW_RESTORES` tasks restore their stores so.
"""

from __future__ import annotations

import os
import time
from typing import Any

from millrace import App, serdes
from streams.runtime.restoring.changelog_follower import ChangelogFollower
from streams.runtime.restoring.changelog_reader import StoreChangelogReader

_HANG_S, SLOW_S, BRIEF_S = 600, 0.03, 0.001

_OFTEN = {"statistics.interval.ms": 1_000}

app = App(
    "words",
    commit_interval_ms=100,
    processing_handler="dead_letter:words-dead",
    consumer=_OFTEN,
    producer=_OFTEN,
)


def check(word: str) -> str:
    """Return a word. Raises ValueError for `bad`, and does not return for `hang`."""
    if word == "bad":
        raise ValueError(word)
    if word == "slow":
        time.sleep(SLOW_S)
    if word == "brief":
        time.sleep(BRIEF_S)
    if word == "hang":
        time.sleep(_HANG_S)
    return word


if "SLOW_STANDBYS" in os.environ:
    follow_batch = ChangelogFollower.follow_batch

    def follow_slowly(follower: ChangelogFollower[Any]) -> bool:
        time.sleep(SLOW_S)
        return follow_batch(follower)

    ChangelogFollower.records_max = 1
    setattr(ChangelogFollower, "follow_batch", follow_slowly)  # noqa: B010

if "SLOW_RESTORES" in os.environ:
    restore_batch = StoreChangelogReader.restore_batch

    def restore_slowly(reader: StoreChangelogReader[Any]) -> bool:
        time.sleep(SLOW_S)
        return restore_batch(reader)

    StoreChangelogReader.records_max = 1
    setattr(StoreChangelogReader, "restore_batch", restore_slowly)  # noqa: B010

words = app.stream("words-in", key=serdes.string, value=serdes.string).map_values(check)
words.group_by_key().count(store="counts").to_stream().to("words-out")
