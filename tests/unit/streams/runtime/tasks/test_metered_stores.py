"""Test that a store's operations are counted, each once, and that what they return is unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from state.memory import MemoryDisk
from state.store_checkpoint import StoreCheckpoint
from state.windowed import Windowed
from streams import serdes
from streams.common.timings import Timing
from streams.graph.nodes import StoreKind, StoreSpec
from streams.runtime.tasks.metered_calls import MeteredCalls
from streams.runtime.tasks.metered_stores import StoreMeter, meter_store
from streams.runtime.tasks.store_opening import open_store
from tests.unit.streams.runtime.fakes import Clock


def open_metered(
    kind: StoreKind, *, details: bool = True, **settings: Any
) -> tuple[Any, StoreMeter]:
    spec = StoreSpec(name="s", key=serdes.string, value=serdes.string, kind=kind, **settings)
    store = open_store(spec, MemoryDisk(), clock=lambda: 7)
    return store, meter_store(store, kind, Clock(), details=details)


def list_counts(meter: StoreMeter) -> dict[str, int]:
    meter.add_calls_to_timings()
    meter.observe_buffer()
    return {name: each.total for name, each in meter.timings.items() if each.total}


def update(store: Any) -> None:
    store.get_entry_for_update("k").value = "v"


KEY_VALUE: list[tuple[Callable[[Any], object], dict[str, int]]] = [
    (lambda store: store.get("k"), {"get": 1}),
    (lambda store: store.put("k", "v"), {"put": 1}),
    (update, {"get": 1, "put": 1}),
    (lambda store: store.put_if_absent("k", "v"), {"put-if-absent": 1}),
    (lambda store: store.delete("k"), {"delete": 1}),
    (lambda store: list(store.range("a", "z")), {"range": 1}),
    (lambda store: list(store.reverse_all()), {"all": 1}),
    (lambda store: list(store.prefix_scan("k")), {"prefix-scan": 1}),
    (lambda store: store.drain_writes(), {"flush": 1}),
]


@pytest.mark.parametrize(("use", "expected"), KEY_VALUE)
def test_an_operation_of_a_key_value_store_counts_once(
    use: Callable[[Any], object], expected: dict[str, int]
) -> None:
    store, meter = open_metered(StoreKind.KEY_VALUE)
    use(store)
    assert list_counts(meter) == expected


def test_one_method_that_uses_another_counts_once() -> None:
    window, meter = open_metered(StoreKind.WINDOW, window_size_ms=10)
    window.put("k", "v", 0)
    assert window.fetch("k", 0) == "v"
    assert list(window.fetch("k", 0, 5)) == [(0, "v")]
    assert list_counts(meter) == {"put": 1, "fetch": 2}
    session, meter = open_metered(StoreKind.SESSION)
    session.put(Windowed("k", 0, 5), "v")
    assert session.fetch_session("k", 0, 5) == "v"
    session.remove(Windowed("k", 0, 5))
    assert list_counts(meter) == {"put": 1, "fetch": 1, "remove": 1}
    versioned, meter = open_metered(StoreKind.VERSIONED)
    versioned.put("k", "v", 1)
    assert versioned.delete("k", 2).value == "v"
    assert list_counts(meter) == {"put": 1, "delete": 1}


def test_commits_and_restores_are_timed() -> None:
    store, meter = open_metered(StoreKind.KEY_VALUE)
    store.replay_changelog([(b"k", b"v", 1)], StoreCheckpoint(1, "t"))
    store.put("k", "w")
    store.drain_writes()
    store.commit(StoreCheckpoint(2, "t"))
    assert list_counts(meter) == {"restore": 1, "put": 1, "flush": 1, "commit": 1}
    assert store.get("k") == "w"


def test_an_iterator_is_open_from_its_first_step_until_it_is_closed() -> None:
    store, meter = open_metered(StoreKind.KEY_VALUE, details=False)
    for key in "abc":
        store.put(key, "v")
    assert list_counts(meter) == {}, "operations are counted for the level debug alone"
    exhausted, closed = store.all(), store.range("a", "b")
    assert meter.iterators.count == 0
    assert next(closed) == ("a", "v")
    assert (meter.iterators.count, meter.iterators.oldest_opened_at_ms) == (1, Clock().now_ms())
    closed.close()
    assert [key for key, _ in exhausted] == ["a", "b", "c"]
    assert meter.iterators.count == 0
    assert meter.iterators.durations.total == 2


def test_many_calls_have_the_average_and_the_maximum_of_those_that_are_timed() -> None:
    clock = Clock()
    timing = Timing(clock.monotonic_s)
    calls = MeteredCalls([timing], clock.monotonic_s)

    def take(seconds: float) -> float:
        clock.advance_monotonic_clock(seconds)
        return seconds

    metered = calls.wrap_to_count_calls(take)
    for number in range(129):
        metered(0.5 if number % 64 == 0 else 0.1)
    calls.add_to_timings()
    assert timing.total == 129
    assert timing.read_figures().average == pytest.approx(0.5)
    metered(0.1)  # not timed: it has the average of those before
    calls.add_to_timings()
    assert timing.read_figures().average == pytest.approx(0.5)
    assert timing.read_figures().maximum == 0.5


def test_what_a_method_raises_is_raised_and_counts() -> None:
    store, meter = open_metered(StoreKind.KEY_VALUE)
    with pytest.raises(Exception, match="key"):
        store.get(7)
    assert list_counts(meter) == {"get": 1}
