"""Test that the benchmark of queries ends when a measurement fails."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import queries
from benchmarks.queries import QueryBench


class FailingBench(QueryBench):
    def __init__(self) -> None:
        pass

    def count_committed(self) -> int:
        raise RuntimeError("the broker does not answer")


def test_queries_end_when_the_broker_can_not_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    finished: list[float] = []

    class Load:
        def __init__(self, *_: Any) -> None:
            pass

        def finish(self) -> float:
            finished.append(1.0)
            return 1.0

    monkeypatch.setattr(queries, "QueryLoad", Load)
    with pytest.raises(RuntimeError, match="does not answer"):
        FailingBench().measure_stream(0.0, lambda _: (("127.0.0.1", 1), "/"))
    assert finished == [1.0]
