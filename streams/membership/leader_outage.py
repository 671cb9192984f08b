"""Know whether the partitions that an application needs have leaders, while brokers answer.

A partition without replicas on other brokers is away with its broker. What needs it goes on by
itself when the broker is back, as after an outage of all brokers, and no restart would help. A
partition of an input makes nothing fail while it is away: so brokers are asked for the leaders
every five seconds, over one connection, and also before a time-out ends anything.

    a partition has no leader, at two looks      one warning; another one each minute, with the
      some seconds apart, or while a time-out    seconds
      is over
    all have leaders again                       one warning

Brokers list a broker for a while that has died or hangs, and what it leads. So whether leaders let
connect is tried before a time-out ends anything, which may take some seconds once in an incident;
from then on the watch tries those that did not, and a stream thread takes what the watch knows. The
transaction and group coordinators are asked by `CoordinatorOutage`.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from contextlib import closing
from typing import Any, NamedTuple, TypeAlias

from kio.schema.errors import ErrorCode

from streams.common.addresses import Address
from streams.common.host import Event, Host
from streams.common.topic_partitions import Partition
from streams.errors import AuthenticationError
from streams.membership.connection import (
    BrokerConnection,
    ConnectionLost,
    OpenConnection,
    build_entity,
    load_request_classes,
)

AllAnswer: TypeAlias = bool

log = logging.getLogger(__name__)

_METADATA_API_KEY, _METADATA_VERSION_MAX = 3, 9
_LOOK_INTERVAL_S, _AWAY_LOOK_INTERVAL_S = 5.0, 2.0
_TICK_S = 1.0
_COST_MAX, _PAUSE_MAX_S = 0.01, 60.0
"""The part of the time that looks may take: many partitions are looked at more rarely."""
_ELECTION_S = 5.0
"""For how long a partition may have no leader until that is told: others are elected meanwhile."""
_LOG_INTERVAL_S = 60.0
_ASK_INTERVAL_S = 1.0
_NAMED_MAX = 3


class ListedPartition(NamedTuple):
    """Represents a partition as brokers list it: its leader's address, None if it has no leader.

    `brokers` are the ids of the leader, or of the replicas where there is no leader.
    """

    partition: Partition
    leader: Address | None
    brokers: tuple[int, ...]


class AwayPartition(NamedTuple):
    """Names a partition that can neither be read nor written, and says what is away."""

    partition: Partition
    reason: str


def fetch_leaders(connection: BrokerConnection, topics: Collection[str]) -> list[ListedPartition]:
    """Fetch the leaders of all partitions of these topics from a broker, without creating any.

    Topics that there are not, or that may not be described, are left out. Raises ConnectionLost.
    """
    classes = load_request_classes(connection, _METADATA_API_KEY, _METADATA_VERSION_MAX)
    named = tuple(classes["MetadataRequestTopic"](name=topic) for topic in sorted(topics))
    request = build_entity(
        classes["MetadataRequest"],
        topics=named,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    answer: Any = connection.send_request(request)
    addresses = {int(each.node_id): (each.host, int(each.port)) for each in answer.brokers}
    listed = []
    for topic in answer.topics:
        for each in topic.partitions:
            leader = int(each.leader_id)
            has_leader = each.error_code is not ErrorCode.leader_not_available
            address = addresses.get(leader) if has_leader else None
            brokers = (leader,) if address is not None else tuple(map(int, each.replica_nodes))
            listed.append(
                ListedPartition(Partition(topic.name, int(each.partition_index)), address, brokers)
            )
    return listed


class LeaderOutage:
    """Asks for the leaders of the partitions of `topics`, and tells of those that are away.

    Several threads may use it. Without topics it asks nobody.
    """

    def __init__(
        self, topics: Collection[str], host: Host, open_connection: OpenConnection
    ) -> None:
        self._topics = frozenset(topics)
        self._host = host
        self._open_connection = open_connection
        self._lock = host.create_lock()
        self._away: tuple[AwayPartition, ...] = ()
        self._silent_leaders: set[Address] = set()
        """Leaders that did not let connect when that was tried last."""
        self._since_s: float | None = None
        """The monotonic time in s of the first of the looks that have found a partition away."""
        self._tried_at_s = self._away_at_s = self._log_at_s = float("-inf")
        self._fetch_s = 0.0
        """How long it took brokers to list the leaders at the last look."""
        self._is_told = self._is_watched = False

    @property
    def is_on(self) -> bool:
        """Return whether a partition is away, and for longer than an election takes."""
        return self._is_told

    def was_away_since(self, since_s: float) -> bool:
        """Return whether a partition was logged as without a leader since a monotonic time in s."""
        return self._away_at_s >= since_s

    def describe_outage(self) -> str:
        """Return which partitions are away, and since when, for a person; empty if none is."""
        away, since_s = self._away, self._since_s
        if not away or since_s is None:
            return ""
        return f"{describe_away(away)}, for {self._host.monotonic_s() - since_s:.0f} s"

    def probe_leaders(self, failing_since_s: float) -> AllAnswer:
        """Ask for all leaders, at most once a second, and return whether each lets connect.

        A partition that the watch has found away is believed: a connection to a broker that hangs
        takes seconds, and the caller may have transactions open.
        `failing_since_s` is the monotonic time since when something fails that may need them.
        Raises AuthenticationError where the broker refuses the security.
        """
        if not self._topics:
            return True
        if self._is_watched and self._is_told and self._away:
            return False
        with self._lock:
            if self._host.monotonic_s() < self._tried_at_s + _ASK_INTERVAL_S:
                return not self._away
            try:
                with closing(self._open_connection(None)) as connection:
                    self._probe_and_note_leaders(connection, tries_all=True)
            except ConnectionLost:
                return True  # it is an outage of all brokers, which others know of
            if self._away and self._since_s is not None:
                self._since_s = min(self._since_s, failing_since_s)
                self._log_away_partitions()
            return not self._away

    def watch_until_stopped(self, stop: Event) -> None:
        """Look at the leaders every five seconds, more often while a partition is away."""
        watch = _WatchConnection(self._open_connection)
        next_look_s = self._host.monotonic_s() + _LOOK_INTERVAL_S
        self._is_watched = True
        try:
            while self._topics and not stop.wait(_TICK_S):
                if self._host.monotonic_s() < next_look_s:
                    continue
                try:
                    self._check_leaders_once(watch)
                except AuthenticationError as refusal:
                    log.debug("leaders are not known: %s", refusal)  # others are refused, too
                except ConnectionLost as lost:
                    log.debug("leaders are not known: %s", lost)
                pause_s = _AWAY_LOOK_INTERVAL_S if self._away else _LOOK_INTERVAL_S
                # Attempts to connect do not count: one that fails may take seconds.
                costs_s = min(self._fetch_s / _COST_MAX, _PAUSE_MAX_S)
                next_look_s = self._host.monotonic_s() + max(pause_s, costs_s)
        finally:
            self._is_watched = False
            watch.close()

    def _check_leaders_once(self, watch: _WatchConnection) -> None:
        """Connect to all leaders, and log those that are away for longer than an election takes."""
        connection = watch.ensure_connection()
        try:
            with self._lock:
                self._probe_and_note_leaders(connection, tries_all=False)
                since_s = self._since_s
                if since_s is not None and self._host.monotonic_s() - since_s >= _ELECTION_S:
                    self._log_away_partitions()
        except ConnectionLost:
            watch.close()
            raise

    def _probe_and_note_leaders(self, connection: BrokerConnection, *, tries_all: bool) -> None:
        """Note which partitions are away; connect to each leader, or to those that were silent."""
        began_s = self._host.monotonic_s()
        listed = fetch_leaders(connection, self._topics)
        self._fetch_s = self._host.monotonic_s() - began_s
        addresses = {each.leader for each in listed if each.leader is not None}
        tried = addresses if tries_all else addresses & self._silent_leaders
        refusals: dict[Address, str] = {}
        for address in sorted(tried):
            try:
                self._open_connection(address).close()
            except ConnectionLost as lost:
                refusals[address] = str(lost)
        self._silent_leaders = set(refusals)
        if tries_all:
            self._tried_at_s = self._host.monotonic_s()
        self._note_away(
            tuple(
                AwayPartition(each.partition, reason)
                for each in listed
                if (reason := _explain_away(each, refusals))
            )
        )

    def _note_away(self, away: tuple[AwayPartition, ...]) -> None:
        """Note which partitions are away, and log that all are back if any was logged as away."""
        now_s = self._host.monotonic_s()
        since_s = self._since_s
        self._away = away
        if away:
            if self._is_told:
                self._away_at_s = now_s
            if since_s is None:
                self._since_s = now_s
            return
        self._since_s = None
        if self._is_told and since_s is not None:
            self._is_told = False
            log.warning(
                "all partitions have leaders that answer again, after %.0f s", now_s - since_s
            )

    def _log_away_partitions(self) -> None:
        """Log which partitions are away: at once in each incident, and then each minute."""
        self._away_at_s = now_s = self._host.monotonic_s()
        is_new, self._is_told = not self._is_told, True
        if not is_new and now_s < self._log_at_s:
            return
        self._log_at_s = now_s + _LOG_INTERVAL_S
        if is_new:
            log.warning(
                "%s. Other brokers answer. Nothing is lost, and what needs it goes on when it is "
                "back",
                describe_away(self._away),
            )
        else:
            log.warning("still %s", self.describe_outage())


class _WatchConnection:
    """Holds the connection over which leaders are looked at, and opens it again once it is lost."""

    def __init__(self, open_connection: OpenConnection) -> None:
        self._open_connection = open_connection
        self._connection: BrokerConnection | None = None

    def ensure_connection(self) -> BrokerConnection:
        """Return the connection, opened if need be. Raises ConnectionLost, AuthenticationError."""
        if self._connection is None:
            self._connection = self._open_connection(None)
        return self._connection

    def close(self) -> None:
        """Close the connection, if there is one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _explain_away(listed: ListedPartition, refusals: dict[Address, str]) -> str:
    """Return why a partition can neither be read nor written; empty if it can, as far as known."""
    if listed.leader is None:
        noun = "broker" if len(listed.brokers) == 1 else "brokers"
        return f"its replicas are on {noun} {', '.join(map(str, sorted(listed.brokers)))}"
    if listed.leader in refusals:
        return f"broker {listed.brokers[0]} leads it: {refusals[listed.leader]}"
    return ""


def describe_away(away: tuple[AwayPartition, ...]) -> str:
    """Return which partitions are away and why, of many the first ones."""
    named = "; ".join(f"{each.partition} ({each.reason})" for each in away[:_NAMED_MAX])
    more = f"; and {len(away) - _NAMED_MAX} more partitions" if len(away) > _NAMED_MAX else ""
    return f"no leader answers for {named}{more}"
