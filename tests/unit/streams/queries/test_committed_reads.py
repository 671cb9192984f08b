"""Test that a read sees all of a commit or none of it, and gives up by name where it can't."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from state.errors import StateError
from streams.common.topic_partitions import Partition
from streams.errors import StoreUnavailable
from streams.queries.committed_reads import begin_iterator, read_at_one_commit

IN = Partition("in", 0)


def task_at(offset: int) -> Any:
    return SimpleNamespace(name="0_0", commit_sequence=0, committed_positions={IN: offset})


def commit(task: Any, offset: int, between: Callable[[], None] = lambda: None) -> None:
    task.commit_sequence += 1
    task.committed_positions = {IN: offset}
    between()
    task.commit_sequence += 1


def test_a_read_comes_with_the_position_of_its_commit() -> None:
    assert read_at_one_commit(task_at(7), lambda: "v") == ("v", {IN: 7})


def test_a_read_that_a_commit_overtakes_is_made_again() -> None:
    task = task_at(1)
    values = iter([1, 2])

    def read() -> int:
        value = next(values)
        if value == 1:
            commit(task, 2)
        return value

    assert read_at_one_commit(task, read) == (2, {IN: 2})


def test_a_read_that_meets_half_a_commit_waits_for_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_at(1)
    task.commit_sequence = 1

    def end_commit(seconds: float) -> None:
        task.committed_positions = {IN: 2}
        task.commit_sequence = 2

    monkeypatch.setattr(time, "sleep", end_commit)
    assert read_at_one_commit(task, lambda: "v") == ("v", {IN: 2})


def test_a_commit_that_failed_half_way_is_never_read() -> None:
    task = task_at(1)
    with pytest.raises(StateError):
        commit(task, 2, between=lambda: (_ for _ in ()).throw(StateError("disk full")))
    with pytest.raises(StoreUnavailable, match="task 0_0 commits more often"):
        read_at_one_commit(task, lambda: "half", 0.0)


def test_an_error_of_a_store_that_a_commit_has_changed_meanwhile_is_no_answer() -> None:
    task = task_at(1)
    attempts: list[int] = []

    def read() -> str:
        attempts.append(1)
        if len(attempts) == 1:
            commit(task, 2)
            raise StateError("changed while it was read")
        return "v"

    assert read_at_one_commit(task, read) == ("v", {IN: 2})
    with pytest.raises(StateError, match="closed"):
        read_at_one_commit(task, lambda: (_ for _ in ()).throw(StateError("closed")))


def test_an_iterator_that_has_begun_yields_everything() -> None:
    begun: list[int] = []

    def items() -> Any:
        begun.append(1)
        yield from range(3)

    iterator = begin_iterator(items())
    assert begun == [1]
    assert list(iterator) == [0, 1, 2]
    assert list(begin_iterator(iter(()))) == []
