"""Test that a leader moves a task only from a member that has stopped it, whatever its release."""

from __future__ import annotations

import orjson

from coordinator.assignors import consumer_protocol
from coordinator.assignors.subscriptions import ConsumerSubscription
from streams.membership.protocol import (
    AssignmentInfo,
    SubscriptionInfo,
    decode_assignment,
    decode_subscription,
    encode_assignment,
)
from tests.unit.streams.runtime.assigning.test_topology_versions import plan, says

ALL_TASKS = ("0_0", "0_1", "0_2")


def owner(*tasks: str, generation: int = 4) -> SubscriptionInfo:
    return says("a", runs=tasks)._replace(generation=generation)


def from_earlier_release(*tasks: str) -> SubscriptionInfo:
    """Return what a member says that stops its tasks before it joins, as it was on the wire."""
    user_data = orjson.dumps({"format": 1, "tasks": tasks})
    sent = consumer_protocol.encode_subscription(ConsumerSubscription(("a",), user_data))
    return decode_subscription(sent)


def test_a_task_that_a_member_owns_is_revoked_before_another_gets_it() -> None:
    given = plan(("a",), {"m": owner(*ALL_TASKS), "new": owner(generation=-1)})
    assert all(each.is_cooperative for each in given.values())
    assert given["new"].tasks == ()
    (moving,) = given["m"].revoked
    assert {moving, *given["m"].tasks} == set(ALL_TASKS)
    assert moving not in given["m"].tasks
    assert len(given["m"].partitions) == 2, "group tools don't show what is to be given up"
    again = plan(("a",), {"m": owner(*given["m"].tasks, generation=5), "new": owner(generation=5)})
    assert again["new"].tasks == (moving,)
    assert again["m"].tasks == given["m"].tasks
    assert not any(each.revoked for each in again.values())


def test_tasks_of_a_member_of_the_earlier_release_move_at_once() -> None:
    given = plan(("a",), {"old": from_earlier_release(*ALL_TASKS), "new": owner(generation=-1)})
    assert {*given["old"].tasks, *given["new"].tasks} == set(ALL_TASKS)
    assert len(given["new"].tasks) >= 1
    assert not any(each.revoked for each in given.values())


def test_a_member_of_the_earlier_release_waits_for_tasks_of_this_one() -> None:
    given = plan(("a",), {"old": from_earlier_release(), "new": owner(*ALL_TASKS)})
    assert given["old"].tasks == ()
    assert len(given["new"].revoked) == 1


def test_a_stale_claim_takes_no_task_from_who_was_given_it_since() -> None:
    given = plan(("a",), {"m": owner(*ALL_TASKS), "slept": owner("0_0", generation=2)})
    assert "0_0" not in given["slept"].tasks
    assert {*given["m"].tasks, *given["m"].revoked} == set(ALL_TASKS)


def test_a_revoked_task_has_the_owners_number() -> None:
    """Test two versions that number their sub-topologies the other way round."""
    swapped = says("b", "a", runs=("1_0", "1_1", "1_2", "0_0", "0_1", "0_2"))
    members = {
        "m": swapped._replace(generation=4),
        "new": says("a", "b")._replace(generation=-1),
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
    members["bad"] = members["bad"]._replace(generation=4)
    given = plan(("a",), members)
    assert given["bad"].refused
    assert {*given["m"].tasks, *given["other"].tasks} == set(ALL_TASKS)


def test_an_assignment_of_an_earlier_leader_revokes_nothing_and_says_so() -> None:
    user_data = orjson.dumps({"format": 1, "tasks": ["0_0"]})
    sent = consumer_protocol.encode_assignment([("a", 0)], user_data)
    assert decode_assignment(sent) == AssignmentInfo(("0_0",), (("a", 0),))
    assert not decode_assignment(sent).is_cooperative


def test_an_earlier_member_reads_from_a_new_leader_what_it_knows() -> None:
    given = plan(("a",), {"old": from_earlier_release("0_0"), "new": owner(*ALL_TASKS[1:])})
    _, user_data = consumer_protocol.decode_assignment(encode_assignment(given["old"]))
    fields = orjson.loads(user_data or b"")
    assert fields["format"] == 1
    assert fields["tasks"] == ["0_0"]
