"""Test two workers of which one has a copy of the other's state directory, as a snapshot makes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.brokers import IN_CI
from tests.integration.cluster import Topics, Worker
from tests.processes import wait_until

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]
RECORDS = 600
ID_FILES = ("process-0/id", "directory-id")


def read_ids(state: Path) -> list[str]:
    return [(state / name).read_text() for name in ID_FILES]


def test_one_of_two_workers_on_copies_of_a_directory_becomes_another_member(
    topics: Topics, new_worker: Callable[..., Worker], tmp_path: Path
) -> None:
    original, copy = new_worker(state="original"), new_worker(state="copy")
    states = [tmp_path / name / topics.application for name in ("original", "copy")]
    original.start()
    topics.load(RECORDS)
    topics.wait_for_counts(RECORDS)
    original.stop()
    shutil.copytree(tmp_path / "original", tmp_path / "copy")
    former_ids = read_ids(states[0])
    assert read_ids(states[1]) == former_ids
    original.start()
    copy.start()

    def is_told_apart() -> bool:
        topics.load(10)  # a worker that processes nothing notices at its next heartbeat only
        return read_ids(states[0]) != read_ids(states[1])

    wait_until(is_told_apart, what="two identities")
    topics.load(RECORDS)
    assert topics.wait_for_counts(topics.loaded) == topics.truth
    (original_ids, copied_ids) = (read_ids(state) for state in states)
    assert all(a != b for a, b in zip(original_ids, copied_ids, strict=True))
    renamed = [state for state in states if read_ids(state) != former_ids]
    assert len(renamed) == 1
    logs = [original.log_since(0), copy.log_since(0)]
    assert [log.count("was fenced twice") for log in logs].count(1) == 1, logs
