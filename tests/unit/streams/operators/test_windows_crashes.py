"""Test that windows give the same results when the process crashes in the middle of commits.

Stores and committed offsets hold everything that decides which records are late, which windows have
closed and which sessions were merged.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from streams import App, Store, TopologyTestDriver, serdes, windows

TEXT: Any = {"key": serdes.string, "value": serdes.string}
STEPS = ("PROCESSED", "PRODUCED", "OFFSETS_SENT", "COMMITTED", "STORED")
CUTS = {
    "tumbling": windows.tumbling(10, grace=5),
    "hopping": windows.hopping(10, 4, grace=5),
    "sliding": windows.sliding(10, grace=5),
    "session": windows.session(10, grace=5),
}


def appended(cut: Any, emit: Any, *, caching: bool, persistent: bool) -> App:
    kind = Store.persistent if persistent else Store.in_memory
    app = App("a")
    grouped = app.stream("in", **TEXT).group_by_key().windowed_by(cut)
    table = grouped.reduce(lambda old, new: old + new, store=kind("s", caching=caching), emit=emit)
    table.to_stream().to("out")
    return app


def results(driver: TopologyTestDriver) -> list[tuple[str, Any, int]]:
    return [(str(r.key), r.value, r.timestamp_ms) for r in driver.topic("out").read_all()]


@pytest.mark.parametrize("emit", ["on_update", "on_close"])
@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("seed", range(3))
def test_a_crash_at_any_step_changes_no_result(cut: Any, emit: str, seed: int) -> None:
    rng = Random(seed)
    how = {"caching": rng.random() < 0.5, "persistent": seed == 0}
    records = [
        (rng.choice("ab"), rng.choice("xyz"), max(1, now_ms + rng.randrange(-25, 5)))
        for now_ms in range(1, 120, 4)
    ]
    with TopologyTestDriver(appended(cut, emit, **how)) as driver:
        for key, value, time_ms in records:
            driver.topic("in").pipe(key, value, timestamp_ms=time_ms)
        undisturbed, kept = results(driver), list(driver.store("s").all())
    with TopologyTestDriver(appended(cut, emit, **how)) as driver:
        for key, value, time_ms in records:
            crashes = rng.random() < 0.4
            if crashes:
                driver.crash(at=rng.choice(STEPS))
            driver.topic("in").pipe(key, value, timestamp_ms=time_ms)
            if crashes:
                driver.restart()
        assert results(driver) == undisturbed, f"{seed=} {how}"
        assert list(driver.store("s").all()) == kept, f"{seed=} {how}"
    assert len(undisturbed) > 5
