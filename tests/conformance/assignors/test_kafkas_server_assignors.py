"""Test the server's assignors against those of Kafka's group coordinator.

`range` has the same answers. `uniform` has as good ones: Kafka's takes topics and members in the
order of its hash maps, so who exactly gets a partition is up to chance there.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from uuid import UUID

import pytest

from coordinator.assignors.server import range as range_assignor
from coordinator.assignors.server import uniform
from coordinator.assignors.server.subscription import MemberSubscription, TopicPartitions
from tests.conformance.assignors.jvm import answers

SEEDS = range(60)
ROUNDS = 5
ASSIGNORS: Mapping[str, ModuleType] = {each.NAME: each for each in (range_assignor, uniform)}

Targets = Mapping[str, TopicPartitions]


@dataclass(frozen=True)
class Step:
    """Holds a group when its target is computed, and both targets."""

    seed: int
    assignor: str
    members: Mapping[str, MemberSubscription]
    partitions: Mapping[UUID, int]
    ours: Targets
    kafkas: Targets

    def is_homogeneous(self) -> bool:
        return len({member.topics for member in self.members.values()}) == 1

    def moved(self, targets: Targets) -> int:
        """Return how many partitions a member loses that it could have kept."""
        return sum(
            len(assigned - targets[name].get(topic, frozenset()))
            for name, member in self.members.items()
            for topic, assigned in member.assigned.items()
            if topic in member.topics
        )


def steps(seed: int, assignor: str) -> Iterator[Step]:
    """Generate a group's history from a seed: members come, go and change, and topics grow."""
    rng = random.Random(f"{seed} {assignor}")
    alike = rng.random() < 0.5
    partitions = {
        UUID(int=rng.getrandbits(128)): rng.randint(1, 12) for _ in range(rng.randint(1, 6))
    }

    def some_topics() -> frozenset[UUID]:
        return frozenset(rng.sample(list(partitions), rng.randint(1, len(partitions))))

    same = some_topics()
    members: dict[str, MemberSubscription] = {}
    for _ in range(ROUNDS):
        for _ in range(rng.choice([0, 1, 1, 3]) if members else rng.randint(1, 6)):
            instance_id = f"i{rng.getrandbits(32)}" if rng.random() < 0.3 else None
            members[f"m{rng.getrandbits(32)}"] = MemberSubscription(
                same if alike else some_topics(), {}, None, instance_id
            )
        for name in rng.sample(list(members), min(len(members) - 1, rng.choice([0, 0, 1, 2]))):
            del members[name]
        if rng.random() < 0.3:
            partitions[rng.choice(list(partitions))] += rng.randint(1, 5)
        if rng.random() < 0.3:
            same = some_topics()
            for name, member in members.items():
                if alike or rng.random() < 0.3:
                    members[name] = MemberSubscription(
                        same, member.assigned, None, member.instance_id
                    )
        ours = ASSIGNORS[assignor].assign(members, partitions)
        yield Step(seed, assignor, dict(members), dict(partitions), ours, {})
        for name, member in members.items():
            members[name] = MemberSubscription(member.topics, ours[name], None, member.instance_id)


def question(step: Step) -> dict[str, object]:
    return {
        "assignor": step.assignor,
        "partitions": {str(topic): count for topic, count in step.partitions.items()},
        "members": [
            (
                name,
                member.instance_id,
                [str(topic) for topic in member.topics],
                {str(topic): sorted(mine) for topic, mine in member.assigned.items()},
            )
            for name, member in step.members.items()
        ],
    }


@pytest.fixture(scope="module")
def compared() -> list[Step]:
    asked = [each for seed in SEEDS for assignor in ASSIGNORS for each in steps(seed, assignor)]
    kafkas = answers("ServerAssignors.java", map(question, asked))
    return [
        Step(
            each.seed,
            each.assignor,
            each.members,
            each.partitions,
            each.ours,
            {
                name: {UUID(topic): frozenset(mine) for topic, mine in target.items()}
                for name, target in answer.items()
            },
        )
        for each, answer in zip(asked, kafkas, strict=True)
    ]


def sizes(targets: Targets) -> list[int]:
    return sorted(sum(map(len, target.values())) for target in targets.values())


def test_range_returns_what_kafkas_does(compared: list[Step]) -> None:
    of_range = [step for step in compared if step.assignor == range_assignor.NAME]
    assert len(of_range) == ROUNDS * len(SEEDS)
    for step in of_range:
        assert step.ours == step.kafkas, f"seed {step.seed}"


def test_uniform_is_as_balanced_as_kafkas_and_moves_as_few(compared: list[Step]) -> None:
    alike = [s for s in compared if s.assignor == uniform.NAME and s.is_homogeneous()]
    assert len(alike) > 100
    for step in alike:
        assert sizes(step.ours) == sizes(step.kafkas), f"seed {step.seed}"
        assert step.moved(step.ours) == step.moved(step.kafkas), f"seed {step.seed}"


def test_uniform_does_as_well_as_kafkas_where_subscriptions_differ(compared: list[Step]) -> None:
    """Check the quality over all groups, as in a single one the order of either may be luckier."""
    differing = [s for s in compared if s.assignor == uniform.NAME and not s.is_homogeneous()]
    assert len(differing) > 100

    def squares(targets: Targets) -> int:
        return sum(size * size for size in sizes(targets))

    ours = [squares(step.ours) for step in differing]
    kafkas = [squares(step.kafkas) for step in differing]
    assert sum(ours) <= 1.01 * sum(kafkas)
    assert sum(one == other for one, other in zip(ours, kafkas, strict=True)) > 0.9 * len(ours)
    moves = [(step.moved(step.ours), step.moved(step.kafkas)) for step in differing]
    assert sum(mine for mine, _ in moves) <= 1.05 * sum(theirs for _, theirs in moves)
