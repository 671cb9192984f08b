"""Test that a leader moves a task only from a member that has stopped it."""

from __future__ import annotations

from streams.membership.protocol import SubscriptionInfo
from tests.unit.streams.runtime.assigning.test_topology_versions import plan, says

ALL_TASKS = ("0_0", "0_1", "0_2")


def owner(*tasks: str, generation: int = 4) -> SubscriptionInfo:
    return says("a", runs=tasks, generation=generation)


def test_a_task_that_a_member_owns_is_revoked_before_another_gets_it() -> None:
    given = plan(("a",), {"m": owner(*ALL_TASKS), "new": owner(generation=-1)})
    assert given["new"].tasks == ()
    (moving,) = given["m"].revoked
    assert {moving, *given["m"].tasks} == set(ALL_TASKS)
    assert moving not in given["m"].tasks
    assert len(given["m"].partitions) == 2, "group tools don't show what is to be given up"
    again = plan(("a",), {"m": owner(*given["m"].tasks, generation=5), "new": owner(generation=5)})
    assert again["new"].tasks == (moving,)
    assert again["m"].tasks == given["m"].tasks
    assert not any(each.revoked for each in again.values())


def test_a_stale_claim_takes_no_task_from_who_was_given_it_since() -> None:
    given = plan(("a",), {"m": owner(*ALL_TASKS), "slept": owner("0_0", generation=2)})
    assert "0_0" not in given["slept"].tasks
    assert {*given["m"].tasks, *given["m"].revoked} == set(ALL_TASKS)


def test_a_revoked_task_has_the_owners_number() -> None:
    """Test two versions that number their sub-topologies the other way round."""
    swapped = says("b", "a", runs=("1_0", "1_1", "1_2", "0_0", "0_1", "0_2"))
    members = {
        "m": swapped,
        "new": says("a", "b", generation=-1),
    }
    given = plan(("a", "b"), members)
    assert len(given["m"].revoked) == 3
    everything = {*given["m"].tasks, *given["m"].revoked}
    assert everything == set(swapped.tasks)
    kept = {(topic, number) for topic, number in given["m"].partitions}
    assert kept == {("b" if t[0] == "0" else "a", int(t[2])) for t in given["m"].tasks}


def test_what_a_refused_member_owns_is_free() -> None:
    """Test that it needs no round of its own: it ends, and commits nothing any more."""
    members = {"m": owner("0_0"), "other": owner("0_1"), "bad": says("ab", runs=("0_2",))}
    given = plan(("a",), members)
    assert given["bad"].refused
    assert {*given["m"].tasks, *given["other"].tasks} == set(ALL_TASKS)
