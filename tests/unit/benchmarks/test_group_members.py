"""Test when the benchmark of groups takes a group for stable, and what it takes for an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from struct import pack
from typing import cast
from uuid import UUID

import pytest

from benchmarks import group_wire as wire
from benchmarks.group_clients import Shares
from benchmarks.group_load import check
from benchmarks.group_members import Board, ConsumerMember, Member, Unstable, ranges
from coordinator.shard.record_fields import FieldReader

TOPIC_ID = UUID(int=7)
ASSIGNING_ANSWER = (
    pack(">ib", 1, 0)  # the header
    + pack(">ih", 0, 0)  # throttling, no error
    + b"\0\0"  # no message, no member id
    + pack(">iib", 3, 100, 1)  # epoch, interval, an assignment
    + b"\2"
    + TOPIC_ID.bytes
    + b"\3"
    + pack(">ii", 0, 1)
    + b"\0\0\0"
)
EVEN: Mapping[str, tuple[int, set[int]]] = {"a": (3, {0, 1}), "b": (3, {2, 3})}


async def is_stable(have: Mapping[str, tuple[int, set[int]]], members: int = 2) -> bool:
    board = Board(4)
    board.expect(members)
    for name, (epoch, owned) in have.items():
        board.note_owned(cast(Member, name), epoch, frozenset(owned))
    try:
        await board.wait_until_stable(0.0)
    except Unstable:
        return False
    return True


def test_a_group_is_stable_when_all_partitions_are_shared_evenly_in_one_epoch() -> None:
    assert asyncio.run(is_stable(EVEN))


@pytest.mark.parametrize(
    ("member", "epoch", "owned"),
    [("b", 2, {2, 3}), ("b", 3, {1, 2}), ("b", 3, {2}), ("b", 3, {1, 2, 3})],
    ids=["an older epoch", "two owners", "no owner", "two owners and none left over"],
)
def test_a_group_is_not_stable_with(member: str, epoch: int, owned: set[int]) -> None:
    assert not asyncio.run(is_stable({**EVEN, member: (epoch, owned)}))


def test_a_group_is_not_stable_while_members_are_missing_or_their_shares_uneven() -> None:
    assert not asyncio.run(is_stable(EVEN, members=3))
    assert not asyncio.run(is_stable({"a": (3, {0, 1, 2}), "b": (3, {3})}))


def test_a_group_that_does_not_stay_stable_is_not() -> None:
    async def scenario() -> None:
        board = Board(4)
        board.expect(2)
        for name, (epoch, owned) in EVEN.items():
            board.note_owned(cast(Member, name), epoch, frozenset(owned))
        board.note_owned(cast(Member, "b"), 4, frozenset({3}))
        with pytest.raises(Unstable, match=r"did not stay so: 2 of 2 members in \[3, 4\] have 3"):
            await board.wait_until_stable(1.0)

    asyncio.run(scenario())


def test_consumers_are_stable_when_each_has_its_even_share() -> None:
    shares = Shares(2, 4)
    shares.add(0, [0, 1, 2, 3])
    shares.take(0, [2, 3])
    shares.add(1, [1, 2])
    with pytest.raises(RuntimeError, match=r"shares of \[2, 2\]"):
        shares.wait_until_stable(0.0)
    shares.take(1, [1])
    shares.add(1, [3])
    assert shares.wait_until_stable(0.0) > 0


class SilentConnection:
    """Stands in for a connection, and notes what is sent."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def send(self, frame: bytes, on_answer: Callable[[bytes], None]) -> None:
        self.sent.append(frame)
        self.on_answer = on_answer

    async def call(self, frame: bytes) -> bytes:
        """Have the heartbeat before answered while the member waits to have left."""
        self.sent.append(frame)
        self.on_answer(ASSIGNING_ANSWER)
        return b""

    def close(self) -> None: ...


def test_a_member_that_leaves_answers_no_assignment_that_comes_meanwhile() -> None:
    connection, board = SilentConnection(), Board(4)
    member = ConsumerMember(cast(wire.Connection, connection), "g", "words", TOPIC_ID, board)
    member.start()
    connection.on_answer(ASSIGNING_ANSWER)
    assert len(connection.sent) == 2
    asyncio.run(member.leave())
    assert len(connection.sent) == 3, "and nothing after the last"


@pytest.mark.parametrize("members", [1, 7, 200, 201])
def test_the_ranges_of_a_leader_are_all_partitions_once_and_even(members: int) -> None:
    found = []
    for made in ranges("words", 2_000, members):
        assignment = FieldReader(FieldReader(made).read_byte_field())
        assert assignment.read_int16() == 0
        assert [assignment.read_string() for _ in range(assignment.read_array_length())] == [
            "words"
        ]
        found.append([assignment.read_int32() for _ in range(assignment.read_array_length())])
    assert sorted(partition for mine in found for partition in mine) == list(range(2_000))
    assert max(map(len, found)) - min(map(len, found)) <= 1


def test_an_answer_that_is_not_the_expected_one_spoils_the_measurement() -> None:
    check(b"same", b"same")
    with pytest.raises(RuntimeError, match="other"):
        check(b"other", b"same")


def test_a_commit_that_was_refused_spoils_the_measurement() -> None:
    head = bytes(4) + b"\0" + bytes(4)
    partition = b"\0\0\0\7" + b"%b" + b"\0"
    answer = head + b"\2" + wire.compact("words") + b"\2" + partition + b"\0\0"
    wire.check_committed(answer % b"\0\0")
    with pytest.raises(RuntimeError, match="words-7: error 25"):
        wire.check_committed(answer % b"\0\x19")
