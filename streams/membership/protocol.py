"""Encode what members and leader tell each other: ConsumerProtocol with JSON as its user data.

    field       of a subscription                    of an assignment
    format      1                                    1
    tasks       active tasks that the member owns    active tasks that it is to run, in its own
                                                     numbers
    shutdown    why all members are to end           the same, passed on
    topology    the member's own, declared           fingerprints: for whom it was made, and whose
                                                     the leader's is
    former      tasks that it ran before it lost
                its membership, if it has none now
    refused                                          why this member is to end
    failed                                           why the threads of all members end, as the
                                                     application's own assignor failed
    notice                                           what the member is to log
    generation  the one in which it owns `tasks`
    process     the id of its process
    directory   the id of its state directory
    offsets     of each task with state in that      (see `SubscriptionInfo.offsets`)
                directory
    deflated    the same, where there are many:
                deflated JSON in base64
    tags        its client tags (KIP-708)
    rack        its rack (KIP-925)
    revoked                                          active tasks that it is to give up
    endpoint    host:port where its worker answers
                queries
    endpoints                                        for each such endpoint the active tasks and
                                                     the standby and warm-up tasks of its members
    endpoints_deflated                               the same, where there are many
    standby     standby and warm-up tasks that it    standby tasks that it is to run
                runs
    warmup                                           warm-up tasks that it is to run
    following                                        the partitions that standby and warm-up tasks
                                                     would read
    rejoin_ms                                        when it is to join again (KIP-441)

Readers skip fields that they don't know, and empty ones are left out: so what a later release adds,
an earlier one can read. `format` and `tasks` are always there, as are the `topology` and the
`generation` of a subscription. `format` changes only where that can't be kept.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import orjson

from coordinator.assignors import consumer_protocol
from coordinator.assignors.subscriptions import ConsumerSubscription
from streams.topology.declared import DeclaredTopology, decode_topology, encode_topology

T = TypeVar("T")

_FORMAT = 1
_PLAIN_BYTES_MAX = 2_000
"""The bytes of a field in JSON up to which it is sent as it is, and not deflated."""

RUNNING_OFFSET = -2
"""Stands for the offset of an active task that runs, whose lag is nothing (SubscriptionInfo's
LATEST_OFFSET)."""


class EndpointTasks(NamedTuple):
    """Holds the active tasks, and the standby and warm-up tasks, behind one endpoint.

    In an assignment they have the numbers of the member that it is for. Kafka Streams' counterpart
    is StreamsMetadata.
    """

    active: tuple[str, ...] = ()
    standby: tuple[str, ...] = ()


class SubscriptionInfo(NamedTuple):
    """Represents a member's subscription for the leader: the tasks that it runs, its topology.

    With `shutdown` it asks all members to end. Beside it the leader learns the topics that the
    member reads, and its `topology`, which is None only until it is encoded. `former` are the
    tasks that a member ran before it lost its membership: they tell which version of the topology
    ran, and are nobody's now. Kafka Streams' counterpart is SubscriptionInfo.

    `generation` is the one in which the member was given its tasks, if only to have none; -1 if it
    has no assignment. It keeps processing them while it joins, so that a leader gives none of them
    to another member before it has been revoked (KIP-429). Members with the same `directory` share
    a state directory, and so the state of tasks; those with the same `process` share a process.
    """

    tasks: tuple[str, ...]
    shutdown: str = ""
    topics: tuple[str, ...] = ()
    topology: DeclaredTopology | None = None
    former: tuple[str, ...] = ()
    generation: int = -1
    process: str = ""
    directory: str = ""
    offsets: Mapping[str, int] = MappingProxyType({})
    """The sum of the changelog positions of each task with state in the member's directory; or
    `RUNNING_OFFSET` for a task that runs there, whose state is up to date."""
    tags: Mapping[str, str] = MappingProxyType({})
    standby: tuple[str, ...] = ()
    """The standby and warm-up tasks that it runs, so that they stay with it."""
    endpoint: str = ""
    """The host:port at which its worker answers queries; empty if it answers none."""
    rack: str = ""
    """The rack of its consumers; empty if it names none."""

    def require_topology(self) -> DeclaredTopology:
        """Return the topology that the member declared. Raises ValueError for one not encoded."""
        if self.topology is None:
            raise ValueError("the subscription declares no topology: it was not encoded yet")
        return self.topology


class AssignmentInfo(NamedTuple):
    """Represents the leader's assignment for a member: its tasks and the partitions they read.

    Or it passes on why all are to end, or says why this one is refused, or why tasks could not be
    assigned (`failed`): then there are none.
    `fingerprint` is of the topology that the member had declared, `leader` of the leader's own;
    both are empty in an assignment without tasks by which all are to end. `notice` is what the
    member is to log. Kafka Streams' counterpart is AssignmentInfo.

    `revoked` are tasks that the member owns, which no other has been given: it is to commit and
    close them, and to join again, at once if it runs none of them (KIP-429). `following` are the
    partitions that `standby` and `warmup` tasks would read if they were active.
    """

    tasks: tuple[str, ...]
    partitions: tuple[tuple[str, int], ...]
    shutdown: str = ""
    refused: str = ""
    notice: str = ""
    fingerprint: str = ""
    leader: str = ""
    revoked: tuple[str, ...] = ()
    standby: tuple[str, ...] = ()
    warmup: tuple[str, ...] = ()
    following: tuple[tuple[str, int], ...] = ()
    rejoin_ms: int = 0
    """In how many ms the member is to join again, to let tasks move to members that have caught up
    meanwhile; 0: not (KIP-441's probing rebalance)."""
    inputs_hash: int = 0
    """A hash of the numbers of partitions of the inputs that were assigned; 0: not told.

    A leader that comes back as a static member, which assigns nothing, compares it."""
    endpoints: Mapping[str, EndpointTasks] = MappingProxyType({})
    """The tasks behind each endpoint of the group that answers queries, by host:port."""
    failed: str = ""

    def is_for_other_topology(self, topology: DeclaredTopology) -> bool:
        """Return whether the leader made this assignment for another topology than `topology`.

        A static member that comes back gets what was assigned before, in the task numbers of that
        time.
        """
        return self.fingerprint not in ("", topology.fingerprint)


def encode_subscription(
    topics: Iterable[str], subscription: SubscriptionInfo, declared: DeclaredTopology
) -> bytes:
    """Encode the subscription of a member that reads `topics` and declares its topology."""
    user_data = _encode_fields(
        tasks=subscription.tasks,
        shutdown=subscription.shutdown,
        topology=encode_topology(declared),
        former=subscription.former,
        generation=subscription.generation,
        process=subscription.process,
        directory=subscription.directory,
        **_encode_compact("offsets", "deflated", dict(sorted(subscription.offsets.items()))),
        tags=dict(subscription.tags),
        standby=subscription.standby,
        endpoint=subscription.endpoint,
        rack=subscription.rack,
    )
    return consumer_protocol.encode_subscription(ConsumerSubscription(tuple(topics), user_data))


def decode_subscription(data: bytes) -> SubscriptionInfo:
    """Decode a subscription; raise ValueError for bytes that no Millrace member has sent."""
    subscription = consumer_protocol.decode_subscription(data)
    user_data = _UserData(subscription.user_data)
    return SubscriptionInfo(
        user_data.read_strings("tasks"),
        user_data.read("shutdown", str) or "",
        tuple(subscription.topics),
        decode_topology(user_data.require_field("topology", str)),
        user_data.read_strings("former"),
        user_data.require_field("generation", int),
        user_data.read("process", str) or "",
        user_data.read("directory", str) or "",
        _read_compact(user_data, "offsets", "deflated", int),
        user_data.read_mapping("tags", str),
        user_data.read_strings("standby"),
        user_data.read("endpoint", str) or "",
        user_data.read("rack", str) or "",
    )


def _encode_compact(name: str, deflated_name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object as the field `name`, or as `deflated_name` if it is large.

    What each member sends and gets is kept in one record of the group (KAFKA-7149).
    """
    encoded = orjson.dumps(fields)
    if len(encoded) <= _PLAIN_BYTES_MAX:
        return {name: fields}
    return {deflated_name: base64.b64encode(zlib.compress(encoded, 9)).decode()}


def _read_compact(
    user_data: _UserData, name: str, deflated_name: str, kind: type[T]
) -> dict[str, T]:
    """Decode the object of `_encode_compact`, whose values are of `kind`; empty if it is missing.

    Raises ValueError.
    """
    deflated = user_data.read(deflated_name, str)
    if deflated is None:
        return user_data.read_mapping(name, kind)
    try:
        fields: Any = orjson.loads(zlib.decompress(base64.b64decode(deflated, validate=True)))
    except (ValueError, zlib.error) as error:
        raise _to_type_error(deflated_name, deflated) from error
    return user_data.check_mapping(deflated_name, fields, kind)


def _decode_endpoints(user_data: _UserData) -> dict[str, EndpointTasks]:
    """Return the tasks behind each endpoint; empty if there are none. Raises ValueError."""
    encoded = _read_compact(user_data, "endpoints", "endpoints_deflated", list)
    found: dict[str, EndpointTasks] = {}
    for endpoint, roles in encoded.items():
        match roles:
            case [list(active), list(standby)] if all(
                isinstance(task, str) for task in (*active, *standby)
            ):
                found[endpoint] = EndpointTasks(tuple(active), tuple(standby))
            case _:
                raise _to_type_error("endpoints", encoded)
    return found


def encode_assignment(assignment: AssignmentInfo) -> bytes:
    """Encode the assignment of one member."""
    topology = {"fingerprint": assignment.fingerprint, "leader": assignment.leader}
    user_data = _encode_fields(
        tasks=assignment.tasks,
        shutdown=assignment.shutdown,
        refused=assignment.refused,
        failed=assignment.failed,
        notice=assignment.notice,
        topology=topology if assignment.leader else None,
        revoked=assignment.revoked,
        standby=assignment.standby,
        warmup=assignment.warmup,
        following=[tuple(each) for each in assignment.following],
        rejoin_ms=assignment.rejoin_ms,
        inputs=assignment.inputs_hash,
        **_encode_compact(
            "endpoints",
            "endpoints_deflated",
            {endpoint: tuple(tasks) for endpoint, tasks in assignment.endpoints.items()},
        ),
    )
    return consumer_protocol.encode_assignment(assignment.partitions, user_data)


def decode_assignment(data: bytes) -> AssignmentInfo:
    """Decode a member's assignment; empty bytes are an assignment without tasks.

    Raises: ValueError for bytes that no Millrace leader has sent.
    """
    if not data:
        return AssignmentInfo((), ())
    partitions, encoded_user_data = consumer_protocol.decode_assignment(data)
    user_data = _UserData(encoded_user_data)
    fingerprints = user_data.read_mapping("topology", str)
    return AssignmentInfo(
        user_data.read_strings("tasks"),
        tuple(partitions),
        user_data.read("shutdown", str) or "",
        user_data.read("refused", str) or "",
        user_data.read("notice", str) or "",
        fingerprints.get("fingerprint", ""),
        fingerprints.get("leader", ""),
        user_data.read_strings("revoked"),
        user_data.read_strings("standby"),
        user_data.read_strings("warmup"),
        user_data.read_partitions("following"),
        user_data.read("rejoin_ms", int) or 0,
        user_data.read("inputs", int) or 0,
        _decode_endpoints(user_data),
        user_data.read("failed", str) or "",
    )


def _encode_fields(**fields: Any) -> bytes:
    """Encode user data as JSON, without those empty fields that a reader may miss."""
    given_fields = {
        name: value for name, value in fields.items() if value or name in ("tasks", "generation")
    }
    return orjson.dumps({"format": _FORMAT, **given_fields})


class _UserData:
    """Reads the fields of a member's user data, and raises ValueError for what none has sent."""

    def __init__(self, encoded: bytes | None) -> None:
        fields: Any = orjson.loads(encoded or b"null")
        written = fields.get("format") if isinstance(fields, dict) else None
        if isinstance(written, int) and written > _FORMAT:
            raise ValueError(
                f"user data of format {written}, by a later release of Millrace; this one reads "
                f"{_FORMAT}: let all workers be of that release"
            )
        is_known = written == _FORMAT
        if not is_known or fields.get("tasks") is None:
            raise ValueError(f"user data of an unknown format: {encoded!r:.200}")
        self._fields = fields

    def read(self, name: str, kind: type[T]) -> T | None:
        """Return a field of the user data, or None if it is missing; raise for another type."""
        value = self._fields.get(name)
        if value is not None and not isinstance(value, kind):
            raise _to_type_error(name, value)
        return value

    def require_field(self, name: str, kind: type[T]) -> T:
        """Return a field of this type. Raises ValueError where it is missing."""
        value = self.read(name, kind)
        if value is None:
            raise ValueError(f"user data of an unknown format: {name} is missing")
        return value

    def read_strings(self, name: str) -> tuple[str, ...]:
        """Return a field that is an array of strings; none if it is missing."""
        values: list[Any] = self.read(name, list) or []
        if not all(isinstance(each, str) for each in values):
            raise _to_type_error(name, values)
        return tuple(values)

    def read_mapping(self, name: str, kind: type[T]) -> dict[str, T]:
        """Return a field that is an object with values of this type; empty if it is missing."""
        return self.check_mapping(name, self.read(name, dict) or {}, kind)

    @staticmethod
    def check_mapping(name: str, values: Any, kind: type[T]) -> dict[str, T]:
        """Return an object whose values are of this type. Raises ValueError for any other."""
        if isinstance(values, dict) and all(isinstance(each, kind) for each in values.values()):
            return values
        raise _to_type_error(name, values)

    def read_partitions(self, name: str) -> tuple[tuple[str, int], ...]:
        """Return a field of user data as topics and partitions; empty if it is missing."""
        found: list[tuple[str, int]] = []
        for each in self.read(name, list) or []:
            match each:
                case [str(topic), int(number)]:
                    found.append((topic, number))
                case _:
                    raise _to_type_error(name, each)
        return tuple(found)


def _to_type_error(name: str, value: object) -> ValueError:
    """Return the error for a field of user data that has another type than members send."""
    return ValueError(f"user data of an unknown format: {name} is {value!r:.200}")
