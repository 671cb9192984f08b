"""List the groups and their members: which client, with which settings, under which plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from random import Random

from tests.clients.groups.plan import Step, restless, rolling

SESSION_TIMEOUT_MS = 6_000
# A static member's process is to be back before; a JVM takes its time on a busy machine.
STATIC_SESSION_TIMEOUT_MS = 20_000
HEARTBEAT_INTERVAL_MS = 500
# The group's own settings: with the consumer protocol it is not for the clients to say.
GROUP_CONFIGS: Mapping[str, str] = {
    "consumer.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "consumer.heartbeat.interval.ms": str(HEARTBEAT_INTERVAL_MS),
}

Settings = Mapping[str, str]
_PATIENT = {"max.poll.interval.ms": "20000"}
_CLASSIC = {
    "session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "heartbeat.interval.ms": str(HEARTBEAT_INTERVAL_MS),
}
_JAVA_ASSIGNORS = {
    "range": "Range",
    "roundrobin": "RoundRobin",
    "cooperative-sticky": "CooperativeSticky",
}


class Protocol(Enum):
    """Says who computes the assignment: a client, or the broker (KIP-848)."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


@dataclass(frozen=True, slots=True)
class Entry:
    """Represents a member by its client (`java`, `librdkafka`, `go`), group protocol and assignor.

    `by_regex`: it is subscribed to a regular expression, which the broker resolves.
    """

    client: str
    protocol: Protocol
    assignor: str
    static: bool = False
    by_regex: bool = False

    @property
    def settings(self) -> dict[str, str]:
        """Return the settings as the client's member program takes them.

        franz-go asks for `uniform` of itself.
        """
        if self.protocol is Protocol.CONSUMER:
            found = {"group.protocol": "consumer", "group.remote.assignor": self.assignor}
        else:
            named = self.assignor
            if self.client == "java":
                named = f"org.apache.kafka.clients.consumer.{_JAVA_ASSIGNORS[named]}Assignor"
            found = {**_CLASSIC, "partition.assignment.strategy": named}
            if self.static:
                found["session.timeout.ms"] = str(STATIC_SESSION_TIMEOUT_MS)
        if self.client == "go":
            found.pop("group.remote.assignor", None)
            return found
        return {**found, **_PATIENT}


@dataclass(frozen=True, slots=True)
class Team:
    """Represents one group; if it `copies`, it copies its records exactly once."""

    members: Mapping[str, Entry]
    steps: Callable[[Random], Sequence[Step]]
    copies: bool = False

    @property
    def static_session_timeout_ms(self) -> int:
        """Return how long the team's static members may be away; 0 if there is none."""
        static = [each for each in self.members.values() if each.static]
        if not static:
            return 0
        return int(static[0].settings.get("session.timeout.ms", SESSION_TIMEOUT_MS))


def _restless(
    protocol: Protocol, assignor: str, static: str, *dynamic: str, copies: bool = False
) -> Team:
    """Return a team of clients that all have the same assignor, one of them a static member.

    With the consumer protocol two of them are subscribed to a regular expression, and members start
    one by one: librdkafka 2.16 sends a second full heartbeat when it has just been given its first
    partitions, and says there that it has none. If the target has changed meanwhile, the broker
    gives them to others, rightly, while librdkafka goes on to assign them to its application, and
    revokes them a moment later. Kafka does the same.
    """
    is_modern = protocol is Protocol.CONSUMER
    moving = {
        f"{client}-{number}": Entry(client, protocol, assignor, by_regex=is_modern and number == 1)
        for number, client in enumerate(dynamic, start=1)
    }
    staying = {
        f"{static}-static": Entry(static, protocol, assignor, static=True, by_regex=is_modern)
    }
    return Team(
        {**moving, **staying},
        lambda random: restless(random, tuple(moving), tuple(staying), starts_settle=is_modern),
        copies=copies,
    )


def _rolling(*clients: str) -> Team:
    """Return a team that goes from the classic to the consumer protocol, and back.

    Not with a sticky assignor: as a group's leader librdkafka puts user data into the assignments,
    and Kafka does not convert such a group.
    """
    classic = {f"{client}-classic": Entry(client, Protocol.CLASSIC, "range") for client in clients}
    modern = {
        f"{client}-consumer": Entry(client, Protocol.CONSUMER, "uniform") for client in clients
    }
    return Team(
        {**classic, **modern}, lambda random: rolling(random, tuple(classic), tuple(modern))
    )


_classic = partial(_restless, Protocol.CLASSIC)
_consumer = partial(_restless, Protocol.CONSUMER)
TEAMS: Mapping[str, Team] = {
    "range": _classic("range", "librdkafka", "java", "librdkafka", "go"),
    "roundrobin": _classic("roundrobin", "java", "librdkafka", "librdkafka", "go"),
    "cooperative": _classic("cooperative-sticky", "librdkafka", "java", "librdkafka", "go"),
    "consumer": _consumer("uniform", "librdkafka", "java", "librdkafka", "go"),
    "copy-cooperative": _classic(
        "cooperative-sticky", "librdkafka", "java", "librdkafka", "java", copies=True
    ),
    "copy-consumer": _consumer("range", "java", "java", "librdkafka", "librdkafka", copies=True),
    "migration": _rolling("java", "librdkafka", "go"),
}
