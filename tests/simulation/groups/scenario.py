"""Make a scenario of groups, their members and what happens to them, from a seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any, TypeAlias

from tests.simulation.groups.members.member import CONSUMER, Interest, Profile
from tests.simulation.groups.world import SHARDS
from tests.simulation.steps import BadDisk, Fault, Look, PassDays, Scenario, Step, Stop, crash
from tests.simulation.world import Setting

TOPICS = ("apples", "apricots", "beans", "beets")
# Of the members of a group, which all support each of them: after a load the broker has only the
# chosen protocol, and rejects members without it (in Kafka, too).
ASSIGNORS: dict[str, tuple[tuple[str, ...], ...]] = {
    "eager": (("range", "sticky"), ("sticky", "range"), ("sticky", "roundrobin", "range")),
    "cooperative": (("cooperative-sticky",),),
}
MIXED = "mixed"
RETENTION_MS = 60_000  # of offsets: Kafka counts it in minutes
DAYS_KEPT = 7
"""The same where days pass, which is Kafka's default."""
DAYS_CHECKED_MS = 200
PREFIXES = ("a", "b", "ap", "be")


@dataclass(frozen=True, slots=True)
class Start:
    """Represents a step in which a host begins another life, even beside the one before."""

    host: int


@dataclass(frozen=True, slots=True)
class StartAll:
    """Represents a step in which every idle host begins another life."""


@dataclass(frozen=True, slots=True)
class Kill:
    """Represents a step in which a member disappears without a message."""

    host: int


@dataclass(frozen=True, slots=True)
class Leave:
    """Represents a step in which a member leaves the group properly."""

    host: int


@dataclass(frozen=True, slots=True)
class Hang:
    """Represents a step in which a member pauses and goes on as if nothing had happened."""

    host: int
    for_ms: int


@dataclass(frozen=True, slots=True)
class Want:
    """Represents a step in which a member changes its subscription."""

    host: int
    interest: Interest


@dataclass(frozen=True, slots=True)
class Haunt:
    """Represents a step in which a dead member, a zombie, finishes its request."""

    host: int


@dataclass(frozen=True, slots=True)
class Switch:
    """Represents a step in which a host begins another life with the other protocol."""

    host: int


@dataclass(frozen=True, slots=True)
class Resign:
    """Represents a step in which another broker leads a shard of the coordinator for a while."""

    shard: int
    for_ms: int


@dataclass(frozen=True, slots=True)
class Create:
    topic: str
    partitions: int


@dataclass(frozen=True, slots=True)
class Enlarge:
    topic: str
    partitions: int


@dataclass(frozen=True, slots=True)
class Delete:
    topic: str


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    """Represents a step in which a group is deleted, which is refused if it has members."""

    group_id: str


@dataclass(frozen=True, slots=True)
class DeleteOffsets:
    """Represents a step in which offsets are deleted, which is refused for subscribed topics."""

    group_id: str
    topic: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Represents a time in which offsets may expire."""

    for_ms: int


OfHost: TypeAlias = Start | Kill | Leave | Hang | Want | Haunt | Switch
OfAdmin: TypeAlias = Create | Enlarge | Delete | DeleteGroup | DeleteOffsets
Action: TypeAlias = OfHost | OfAdmin | StartAll | Resign | Wait | PassDays | Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSetting:
    """Holds what is the same for all of a history of groups.

    `protocol`: a mixed one has consumers, and the classic members of `classic`, each host now the
    one and now the other.
    """

    world: Setting
    hosts: int
    groups: int
    protocol: str
    classic: str
    static_share: float
    session_timeout_ms: int
    rebalance_timeout_ms: int
    initial_delay_ms: int
    assignment_interval_ms: int

    @property
    def is_mixed(self) -> bool:
        return self.protocol == MIXED

    @property
    def heartbeat_ms(self) -> int:
        return min(self.session_timeout_ms, self.rebalance_timeout_ms) // 3

    @property
    def broker_settings(self) -> dict[str, Any]:
        return {
            "auto_create_topics_enable": False,
            "offsets_retention_minutes": DAYS_KEPT * 24 * 60 if self.world.days else 1,
            "offsets_retention_check_interval_ms": DAYS_CHECKED_MS if self.world.days else 7_000,
            "group_min_session_timeout_ms": 1_000,
            "group_initial_rebalance_delay_ms": self.initial_delay_ms,
            "group_consumer_min_session_timeout_ms": 1_000,
            "group_consumer_session_timeout_ms": self.session_timeout_ms,
            "group_consumer_min_heartbeat_interval_ms": 100,
            "group_consumer_heartbeat_interval_ms": self.heartbeat_ms,
            "group_consumer_assignment_interval_ms": self.assignment_interval_ms,
        }

    def profile(self, number: int, seed: int) -> tuple[Profile, Interest]:
        """Return the host's profile, and its first subscription."""
        random = Random(f"{seed} host {number}")
        is_static = random.random() < self.static_share
        profile = Profile(
            name=f"host-{number}",
            group_id=f"group-{number % self.groups}",
            protocol=random.choice((self.classic, CONSUMER)) if self.is_mixed else self.protocol,
            classic=self.classic,
            assignors=ASSIGNORS[self.classic][number % len(ASSIGNORS[self.classic])],
            instance_id=f"instance-{number}" if is_static else None,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            heartbeat_ms=self.heartbeat_ms,
            # A leader that rejoins below version 9 sees itself as a follower, without topics.
            version=9 if is_static else random.choice((3, 5, 9)),
        )
        return profile, interest(random)


GroupScenario: TypeAlias = Scenario[GroupSetting, Action]


def interest(random: Random) -> Interest:
    if random.random() < 0.15:
        return Interest(prefix=random.choice(PREFIXES))
    count = random.choice((1, 2, 3))
    return Interest(tuple(sorted(random.sample(TOPICS, count))))


def scenario(seed: int, length: int = 40, *, days: bool = False) -> GroupScenario:
    """Return the scenario of a seed; with `days`, some pass in one of ten steps."""
    random = Random(f"{seed} groups")
    world = Setting(
        trouble=random.choice((0.0, 0.0, 0.03, 0.1)),
        flushes=random.random() < 0.25,
        compacts=random.random() < 0.25,
        segment_bytes=random.choice((2_000, 20_000, 1_048_576)),
    )
    hosts = random.choice((2, 3, 3, 4, 5, 6, 8, 12))
    if random.random() < 0.06:
        hosts = random.choice((25, 50))
    protocol = random.choice(("eager", "cooperative", CONSUMER, CONSUMER, MIXED, MIXED))
    setting = GroupSetting(
        world=world,
        hosts=hosts,
        groups=random.choice((1, 1, 2)),
        protocol=protocol,
        classic=protocol if protocol in ASSIGNORS else random.choice(sorted(ASSIGNORS)),
        static_share=random.choice((0.0, 0.3, 1.0)),
        session_timeout_ms=random.choice((3_000, 6_000)),
        rebalance_timeout_ms=random.choice((3_000, 6_000)),
        initial_delay_ms=random.choice((0, 0, 300)),
        assignment_interval_ms=random.choice((0, 1_000)),
    )
    begin: list[Step[Action]] = [
        Step(0, Create(topic, random.randint(1, 9))) for topic in random.sample(TOPICS, 3)
    ]
    begin.append(Step(200, StartAll()))
    happens: list[Step[Action]] = [
        Step(random.choice((0, 20, 300, 1_000, 2_500)), _action(random, setting))
        for _ in range(length)
    ]
    if setting.hosts <= 6 and random.random() < 0.25:
        happens.insert(random.randrange(length), Step(0, Wait(RETENTION_MS + 15_000)))
    if days:
        setting = replace(setting, world=replace(world, days=True))
        random = Random(f"{seed} days")
        for place in sorted(random.sample(range(length), length // 10), reverse=True):
            happens[place:place] = _days(random, setting)
    return Scenario(seed, setting, (*begin, *happens))


def _days(random: Random, setting: GroupSetting) -> Iterator[Step[Action]]:
    """Yield days that pass, at times after all members have left, or are gone without a word."""
    chance = random.random()
    if chance < 0.4:
        for host in range(setting.hosts):
            yield Step(0, Leave(host) if chance < 0.2 else Kill(host))
    yield Step(0, PassDays(random.choice((2, 5, 8, 8))))
    if chance < 0.4:
        yield Step(0, StartAll())


def _action(random: Random, setting: GroupSetting) -> Action:
    chance = random.random()
    host = random.randrange(setting.hosts)
    if chance < 0.52:
        return _of_host(random, setting, host)
    if chance < 0.57:
        return StartAll()
    if chance < 0.69:
        return _of_admin(random, setting)
    if chance < 0.76:
        return Resign(random.randrange(SHARDS), random.choice((10, 500, 4_000)))
    if chance < 0.83:
        return crash(random, flushes=setting.world.flushes)
    if chance < 0.85:
        return Stop(random.choice((10, 300, 2_000)))
    if chance < 0.89:
        return BadDisk(random.choice((2, 5, 12)))
    return Look()


def _of_host(random: Random, setting: GroupSetting, host: int) -> OfHost:
    chance = random.random()
    if chance < 0.35:
        return Switch(host) if setting.is_mixed and chance < 0.2 else Start(host)
    if chance < 0.50:
        return Kill(host)
    if chance < 0.60:
        return Leave(host)
    if chance < 0.78:
        longest_ms = setting.session_timeout_ms + setting.rebalance_timeout_ms
        return Hang(host, random.choice((500, setting.session_timeout_ms + 700, longest_ms)))
    if chance < 0.88:
        return Haunt(host)
    return Want(host, interest(random))


def _of_admin(random: Random, setting: GroupSetting) -> OfAdmin:
    topic = random.choice(TOPICS)
    group_id = f"group-{random.randrange(setting.groups)}"
    chance = random.random()
    if chance < 0.40:
        return Create(topic, random.randint(1, 6))
    if chance < 0.65:
        return Enlarge(topic, random.randint(5, 12))
    if chance < 0.80:
        return Delete(topic)
    return DeleteGroup(group_id) if chance < 0.85 else DeleteOffsets(group_id, topic)
