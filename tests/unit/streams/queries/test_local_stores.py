"""Test that a worker answers only while the group is known to have its members."""

from __future__ import annotations

from pathlib import Path

import pytest

from streams.errors import ConfigError, StoreUnavailable
from streams.membership.protocol import AssignmentInfo
from streams.queries.local_stores import LocalStores, ThreadAssignmentTimes
from streams.queries.store_reads import StoreRead
from tests.unit.streams.runtime.world import World, build_counting_topology

LOOK_UP = StoreRead(is_lookup=True, key="a")


@pytest.mark.parametrize(("age_s", "is_answered"), [(0.5, True), (45.0, True), (45.1, False)])
def test_a_member_of_which_the_group_has_not_heard_for_a_session_answers_nothing(
    tmp_path: Path, age_s: float, is_answered: bool
) -> None:
    world = World(build_counting_topology(), tmp_path)
    world.load("x", "x", key="a")
    assigned = AssignmentInfo(("0_0",), ())
    stores = LocalStores(
        build_counting_topology(),
        list_tasks=lambda: list(world.loop.tasks.values()),
        list_assignments=lambda: [ThreadAssignmentTimes("t", assigned, 0.0, 100.0 - age_s)],
        fetch_partition_counts=lambda: {"in": 1},
        monotonic_s=lambda: 100.0,
        session_timeout_s=45.0,
    )
    seen: list[object] = []

    def look() -> bool:
        if not world.consumed(0):
            return False
        if is_answered:
            answer = stores.read("c", LOOK_UP)
            seen.append(([row.value for row in answer.rows], round(answer.age_s, 3)))
        else:
            with pytest.raises(StoreUnavailable, match=r"has not answered .* for 45\.1 s"):
                stores.read("c", LOOK_UP)
        with pytest.raises(ConfigError, match="there is no store 'd'"):
            stores.read("d", LOOK_UP)
        return True

    world.run_until(look)
    assert seen == ([([2], age_s)] if is_answered else [])
