"""Test that each law holds of a good history and finds what is broken in a bad one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from tests.clients.groups import laws
from tests.clients.groups.delays import Delay, waited_ns, watching
from tests.clients.groups.events import Event, Life, Said, parse
from tests.clients.groups.laws import Return
from tests.clients.groups.plan import Action, restless, rolling
from tests.clients.groups.roster import TEAMS
from tests.processes import wait_until

SECOND = 1_000_000_000


def life(name: str, *lines: str, ended: int | None = None, paused: int | None = None) -> Life:
    """Return a life with these events; times are in seconds."""
    found = Life(name, ended_ns=None if ended is None else ended * SECOND)
    found.paused += [] if paused is None else [paused * SECOND]
    for line in lines:
        event = parse(line)
        numbers = event.numbers
        if event.what == "committed":
            numbers = (*numbers[:2], numbers[2] * SECOND)
        found.hear([Event(event.at_ns * SECOND, event.what, numbers)])
    return found


# Two owners


def test_a_partition_may_change_hands() -> None:
    first = life("a", "1 assigned 0 1", "5 revoked 0", "9 revoked 1", "9 closed", ended=9)
    second = life("b", "5 assigned 0", "9 assigned 1")
    assert laws.two_owners([first, second]) == []


def test_a_partition_assigned_before_it_was_revoked_has_two_owners() -> None:
    first = life("a", "1 assigned 0 1", "6 revoked 0")
    second = life("b", "5 assigned 0")
    (found,) = laws.two_owners([second, first])
    assert found == "partition 0: a from 1.000 to 6.000, and b from 5.000 to inf"


def test_a_short_ownership_within_a_long_one_is_found_with_others_before_it() -> None:
    long = life("long", "1 assigned 0", "20 revoked 0")
    short = life("short", "5 assigned 0", "6 revoked 0")
    late = life("late", "10 assigned 0")
    assert len(laws.two_owners([long, short, late])) == 2


def test_what_a_killed_member_owned_ends_with_it() -> None:
    killed = life("a", "1 assigned 0", ended=5)
    assert laws.two_owners([killed, life("b", "5 assigned 0")]) == []
    assert len(laws.two_owners([killed, life("b", "4 assigned 0")])) == 1


def test_a_fenced_member_was_the_owner_until_the_last_commit_that_was_taken() -> None:
    fenced = life("a", "1 assigned 0", "4 committed 0 7 3", "9 lost 0")
    assert laws.two_owners([fenced, life("b", "4 assigned 0")]) == []
    assert len(laws.two_owners([fenced, life("b", "2 assigned 0")])) == 1


def test_a_commit_of_a_zombie_makes_two_owners() -> None:
    zombie = life("a", "1 assigned 0", "8 committed 0 7 7", "9 lost 0", paused=2)
    assert len(laws.two_owners([zombie, life("b", "6 assigned 0")])) == 1


def test_a_stopped_member_may_close_before_it_hears_that_it_was_fenced() -> None:
    stopped = life("a", "1 assigned 0", "2 committed 0 7 2", "9 revoked 0", paused=3)
    assert laws.two_owners([stopped, life("b", "6 assigned 0")]) == []


def test_an_assignment_that_was_out_of_date_when_it_was_heard_is_no_ownership() -> None:
    stopped = life("a", "9 assigned 0", "10 lost 0", paused=3)
    assert laws.two_owners([stopped, life("b", "6 assigned 0")]) == []


# The others


def test_a_member_that_was_never_stopped_is_not_to_be_fenced() -> None:
    lively = [f"{second} consumed 0 {second} {second}" for second in range(1, 9)]
    fenced = life("a", *lively, "9 lost 0")
    assert laws.fenced_for_nothing([fenced], []) == ["a lost (0,) at 9.000"]
    assert laws.fenced_for_nothing([fenced], [8 * SECOND]) == []
    assert laws.fenced_for_nothing([life("a", *lively, "9 lost 0", paused=2)], []) == []
    assert len(laws.fenced_for_nothing([life("a", "90 lost 0", paused=2)], [2 * SECOND])) == 1


def test_a_member_that_had_no_turn_for_half_its_session_may_be_fenced() -> None:
    starved = ("1 consumed 0 0 0", "5 consumed 0 1 1", "7 consumed 0 2 2")
    assert laws.fenced_for_nothing([life("a", *starved, "7 lost 0")], []) == []
    assert len(laws.fenced_for_nothing([life("a", *starved, "8 lost 0")], [])) == 1


def test_a_member_may_be_fenced_that_waited_for_a_processor_for_half_its_session() -> None:
    fenced = life("a", *(f"{second} consumed 0 0 0" for second in range(1, 9)), "9 lost 0")
    fenced.delays += [Delay(second * SECOND, SECOND // 4) for second in range(1, 10)]
    broker = [Delay(second * SECOND, SECOND // 8) for second in range(1, 10)]
    assert laws.fenced_for_nothing([fenced], [], broker) == []
    assert len(laws.fenced_for_nothing([fenced], [])) == 1, "it waited not long enough itself"
    long_before = [Delay(each.at_ns - 9 * SECOND, each.waited_ns) for each in broker]
    assert len(laws.fenced_for_nothing([fenced], [], long_before)) == 1


def test_a_process_that_is_given_no_processor_is_seen_to_wait() -> None:
    """Two that compete for one processor wait for each other."""
    busy = [sys.executable, "-c", "while True: pass"]
    both = [subprocess.Popen(busy) for _ in range(2)]
    try:
        for each in both:
            os.sched_setaffinity(each.pid, [min(os.sched_getaffinity(0))])
        delays: list[Delay] = []
        with watching(lambda: [(both[0].pid, delays)]):
            wait_until(
                lambda: waited_ns(delays, 0, time.monotonic_ns()) > SECOND // 2,
                what=lambda: f"it has not waited: {delays}",
            )
    finally:
        for each in both:
            each.kill()
            each.wait()


def test_a_member_that_closes_may_call_it_lost() -> None:
    closing = life("a", "1 assigned 0", "8 consumed 0 0 0", "9 lost 0")
    closing.asked_to_end_ns = 8 * SECOND
    assert laws.fenced_for_nothing([closing], []) == []


def test_a_record_that_nobody_consumed_is_lost() -> None:
    lives = [life("a", "1 consumed 0 0 7"), life("b", "2 consumed 0 0 7", "3 consumed 0 2 9")]
    assert laws.lost_records(lives, {(0, 0): 7, (0, 2): 9}) == []
    assert laws.lost_records(lives, {(0, 0): 7, (0, 1): 8, (0, 2): 9}) == [
        "1 never consumed, the first at (0, 1)"
    ]
    assert laws.lost_records(lives, {(0, 0): 7, (0, 2): 8}) == ["9 consumed at (0, 2), where 8 is"]


@pytest.mark.parametrize(("offset", "count"), [(4, 1), (5, 0), (7, 0), (8, 1)])
def test_an_owner_begins_between_what_was_committed_and_what_was_consumed(
    offset: int, count: int
) -> None:
    first = life(
        "a",
        *("1 assigned 0", "2 consumed 0 0 0", "3 consumed 0 4 4", "4 committed 0 5 4"),
        *("5 consumed 0 5 5", "5 consumed 0 6 6"),
    )
    second = life("b", "8 assigned 0", f"9 consumed 0 {offset} 0", "10 consumed 0 99 0")
    assert len(laws.bad_starts([first, second])) == count


def test_a_commit_that_was_answered_after_an_assignment_does_not_bind_it() -> None:
    first = life("a", "1 assigned 0", "2 consumed 0 0 0", "9 committed 0 1 7")
    second = life("b", "8 assigned 0", "10 consumed 0 0 0")
    assert laws.bad_starts([first, second]) == []


def test_nobody_gains_or_loses_while_a_static_member_is_away() -> None:
    away = [Return("a", 5 * SECOND, 9 * SECOND, frozenset({0}), frozenset({0}))]
    lives = [
        life("a.1", "1 assigned 0"),
        life("a.2", "8 assigned 0"),
        life("b.1", "2 assigned 1", "6 assigned", "10 revoked 1"),
    ]
    assert laws.disturbed(lives, away, [], 6_000) == []
    lives.append(life("c.1", "7 revoked 2"))
    assert laws.disturbed(lives, away, [], 6_000) == ["c.1: revoked (2,), while a was away"]
    for broker_end in (1, 6):
        assert laws.disturbed(lives, away, [broker_end * SECOND], 6_000) == []
    assert len(laws.disturbed(lives, away, [0], 6_000)) == 1, "long after the broker's end"
    assert laws.disturbed(lives, away, [], 3_000) == [], "its session was over"


def test_a_member_that_had_no_turn_disturbs_by_being_fenced() -> None:
    away = [Return("a", 5 * SECOND, 9 * SECOND, frozenset({0}), frozenset({0}))]
    fenced = life("b.1", *(f"{second} consumed 1 0 0" for second in range(1, 9)), "9 lost 1")
    heir = life("c.1", "7 assigned 1")
    assert len(laws.disturbed([fenced, heir], away, [], 6_000)) == 1
    fenced.delays += [Delay(second * SECOND, SECOND // 2) for second in range(1, 10)]
    assert laws.disturbed([fenced, heir], away, [], 6_000) == []


def test_a_static_member_gets_its_own_partitions_again() -> None:
    other = [Return("a", 5 * SECOND, 9 * SECOND, frozenset({0, 1}), frozenset({2}))]
    assert laws.disturbed([], other, [], 6_000) == ["a: [2], and [0, 1] before"]


def test_an_output_has_each_record_once_and_in_order() -> None:
    records = {(0, 0): 5, (0, 1): 3, (1, 0): 4}
    assert laws.not_exact([[5, 3], [4]], records) == []
    assert laws.not_exact([[5], [4]], records)[0].startswith("partition 0: 1 lost, 0 doubled")
    assert laws.not_exact([[5, 3], [4, 4]], records)[0].startswith("partition 1: 0 lost, 1 doubled")
    assert laws.not_exact([[3, 5], [4]], records) == [
        "partition 0: 0 lost, 0 doubled, or out of order"
    ]


# What they look at


def test_a_line_that_was_cut_off_is_no_event_yet(tmp_path: Path) -> None:
    path = tmp_path / "said"
    path.write_text("1 assigned 0 1\n2 consu")
    said = Said(path)
    assert list(said.read()) == [Event(1, "assigned", (0, 1))]
    with path.open("a") as file:
        file.write("med 0 5 9\n3 closed")
    assert list(said.read()) == [Event(2, "consumed", (0, 5, 9))]
    said.close()


def test_a_line_that_is_no_event_is_an_error() -> None:
    with pytest.raises(ValueError, match="no event: '1 assumed 0'"):
        parse("1 assumed 0")


def test_a_life_knows_what_it_owns() -> None:
    assert life("a", "1 assigned 0 1 2", "2 revoked 1", "3 assigned 5", "4 lost 0").owned == {2, 5}


@pytest.mark.parametrize("seed", range(50))
def test_a_restless_group_sees_each_way_of_going_once(seed: int) -> None:
    steps = restless(Random(seed), ["a", "b", "c"], ["s"])
    there: set[str] = set()
    for step in steps:
        assert (step.action is Action.START) != (step.member in there), f"{seed=} {step}"
        if step.action is Action.START:
            there.add(step.member)
        elif step.action in (Action.LEAVE, Action.CRASH):
            there.remove(step.member)
    assert there == {"a", "b", "c", "s"}
    once = (Action.LEAVE, Action.CRASH, Action.PAUSE, Action.RETURN)
    assert sorted(each.action.value for each in steps if each.action is not Action.START) == sorted(
        each.value for each in once
    )


@pytest.mark.parametrize("seed", range(20))
def test_a_rolling_restart_ends_where_it_began(seed: int) -> None:
    steps = rolling(Random(seed), ["a", "b"], ["c", "d"])
    there: set[str] = set()
    for step in steps:
        if step.action is Action.START:
            there.add(step.member)
        else:
            there.remove(step.member)
        assert there, f"{seed=}: somebody is always there, after {step}"
    assert there == {"a", "b"}


def test_clients_in_a_group_have_protocol_and_assignor_in_common() -> None:
    for name, team in TEAMS.items():
        ways = {(each.protocol, each.assignor) for each in team.members.values()}
        assert len(ways) == (2 if name == "migration" else 1)
