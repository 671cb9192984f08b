"""Test that a leader's assignors return what Kafka's classes return, down to order and bytes.

Random groups (`histories`) are given to ours in Python and to Kafka's in one JVM. Kafka's is not
called where its sticky assignors break the contract of an assignor, see `Round.is_sound`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from coordinator.assignors import cooperative_sticky, sticky
from coordinator.assignors.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from coordinator.assignors.subscriptions import TopicPartition
from tests.conformance.assignors.jvm import answers
from tests.unit.coordinator.assignors.histories import ASSIGNORS, Group, Round

SEEDS = range(100)
ROUNDS = 6

Compared = Sequence[tuple[int, Round, Mapping[str, Any]]]


@pytest.fixture(scope="module")
def compared() -> Compared:
    """Return random rounds with their seed and Kafka's assignment."""
    rounds = [
        (seed, each)
        for seed in SEEDS
        for assignor in ASSIGNORS
        for each in Group(random.Random(f"{seed} {assignor}"), assignor).rounds(ROUNDS)
        if each.is_sound()
    ]
    kafkas = answers("Assignors.java", (question(each) for _, each in rounds))
    return [(seed, each, answer) for (seed, each), answer in zip(rounds, kafkas, strict=True)]


def question(round_: Round) -> dict[str, object]:
    return {
        "assignor": round_.assignor,
        "generation": round_.generation,
        "topics": round_.topics,
        "members": [
            (member, round_.instance_ids[member], data.hex())
            for member, data in round_.subscriptions.items()
        ],
    }


def user_data(round_: Round, partitions: Sequence[TopicPartition]) -> bytes | None:
    """Return the user data that our assignor gives the next leader after this assignment."""
    match round_.assignor:
        case sticky.NAME:
            return sticky.encode_user_data(partitions, round_.generation)
        case cooperative_sticky.NAME:
            return cooperative_sticky.encode_user_data(round_.generation)
    return None


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_kafkas_class_returns_the_same(compared: Compared, assignor: str) -> None:
    rounds = [each for each in compared if each[1].assignor == assignor]
    assert len(rounds) > 0.8 * len(SEEDS) * ROUNDS
    for seed, round_, answer in rounds:
        kafkas = {
            member: [tuple(partition) for partition in partitions]
            for member, (partitions, *_) in answer["members"].items()
        }
        assert round_.assignment == kafkas, f"{seed=}, generation {round_.generation}"


def test_assignments_user_data_and_subscriptions_have_kafkas_bytes(compared: Compared) -> None:
    for _, round_, answer in compared:
        for member, (listed, assignment, data, subscription) in answer["members"].items():
            partitions = [tuple(partition) for partition in listed]
            assert encode_assignment(partitions).hex() == assignment
            assert sorted(decode_assignment(bytes.fromhex(assignment))[0]) == sorted(partitions)
            assert (data and bytes.fromhex(data)) == user_data(round_, partitions)
            decoded = decode_subscription(round_.subscriptions[member])
            assert encode_subscription(decoded).hex() == subscription
