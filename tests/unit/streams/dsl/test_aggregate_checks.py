"""Test that a lambda which returns the None of a method is refused, and that no other one is."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from streams import App, TopologyError, serdes, windows
from streams.dsl.aggregate_checks import check_returns_aggregate
from tests.unit.streams.dsl.mistakes import TEXT, grouped, provoke_refusal, rows

WINDOWS = windows.tumbling(timedelta(minutes=1))
LOST: dict[str, tuple[Callable[[], Any], Callable[[Any, Any, Any], Any]]] = {
    "append": (list, lambda k, v, items: items.append(v)),
    "add": (set, lambda k, v, seen: seen.add(v)),
    "update": (dict, lambda k, v, found: found.update({k: v})),
    "appendleft": (deque, lambda k, v, items: items.appendleft(v)),
    "insert": (list, lambda k, v, items: items.insert(0, v)),
    "extend": (lambda: {"items": []}, lambda k, v, found: found["items"].extend([v])),
    "clear": (list, lambda k, v, items: items.clear()),
}
KEPT: list[tuple[Callable[[], Any], Callable[[Any, Any, Any], Any]]] = [
    (list, lambda k, v, items: [*items, v]),
    (list, lambda k, v, items: items.append(v) or items),
    (list, lambda k, v, items: (items.append(v), items)[1]),
    (dict, lambda k, v, found: found.pop(k, None)),
    (dict, lambda k, v, found: found.setdefault(k, v)),
    (dict, lambda k, v, found: found | {k: v}),
    (list, lambda k, v, items: v.append(k)),
    (list, lambda k, v, items: items.copy()),
    (lambda: Total(), lambda k, v, total: total.add(v)),
    (lambda: 1 / 0, lambda k, v, items: items.append(v)),
    (int, max),
]


class Total:
    def add(self, value: Any) -> Total:
        return self


@pytest.mark.parametrize("method", LOST)
def test_a_lambda_that_returns_the_none_of_a_method_is_refused(method: str) -> None:
    initializer, aggregator = LOST[method]
    refusal = provoke_refusal(
        lambda app: grouped(app).aggregate(initializer, aggregator, value=serdes.json, name="fold")
    )
    for part in ("'fold': <lambda> (test_aggregate_checks.py:", f"what {method}() returns", "None"):
        assert part in refusal


@pytest.mark.parametrize("case", range(len(KEPT)))
def test_one_that_returns_something_or_may_is_taken(case: int) -> None:
    check_returns_aggregate("fold", KEPT[case][0], KEPT[case][1])


@pytest.mark.parametrize(
    "build",
    [
        lambda app, fold: (
            grouped(app).windowed_by(WINDOWS).aggregate(list, fold, value=serdes.json)
        ),
        lambda app, fold: grouped(app).cogroup(fold).aggregate(list, value=serdes.json),
        lambda app, fold: (
            grouped(app).cogroup(fold).windowed_by(WINDOWS).aggregate(list, value=serdes.json)
        ),
        lambda app, fold: (
            rows(app)
            .group_by(lambda k, v: (v, k), **TEXT)
            .aggregate(list, fold, lambda k, v, items: items, value=serdes.json)
        ),
        lambda app, fold: (
            rows(app)
            .group_by(lambda k, v: (v, k), **TEXT)
            .aggregate(list, lambda k, v, items: items, fold, value=serdes.json)
        ),
    ],
)
def test_every_aggregation_refuses_it(build: Callable[[App, Any], Any]) -> None:
    refusal = provoke_refusal(lambda app: build(app, lambda k, v, items: items.append(v)))
    assert "None deletes the key" in refusal


def test_a_merger_of_sessions_is_looked_at_too() -> None:
    with pytest.raises(TopologyError, match="what extend"):
        grouped(App("a")).windowed_by(windows.session(timedelta(minutes=1))).aggregate(
            list,
            lambda k, v, items: [*items, v],
            merger=lambda k, one, other: one.extend(other),
            value=serdes.json,
        )
