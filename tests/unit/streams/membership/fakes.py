"""Provide a group coordinator that answers from a script, and the connections to it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any

from kio.index import load_response_schema
from kio.schema.errors import ErrorCode

from streams.membership.classic_member import ClassicProtocolMember
from streams.membership.connection import BrokerConnection, ConnectionLost, build_entity
from streams.membership.group_member import AssignGroup, MemberTimeouts
from streams.membership.instance_fencing import InstanceFencing
from streams.membership.protocol import AssignmentInfo, SubscriptionInfo, encode_assignment
from streams.topology.declared import DeclaredTopology
from tests.processes import HANG_LIMIT_S
from tests.unit.streams.runtime.fakes import Clock, ThreadsOnClock

COMMIT, FETCH, FIND, JOIN, HEARTBEAT, LEAVE, SYNC = 8, 9, 10, 11, 12, 13, 14
COORDINATOR = ("coordinator", 9092)
NOTHING = AssignmentInfo((), ())
DECLARED = DeclaredTopology("topology", {}, {})
"""What a member declares, unless a test is about it."""

Answer = Mapping[str, Any] | Exception | Callable[[Callable[[], bool]], Mapping[str, Any]]
"""Fields of a response, an error to raise, or a function of `given_up` that returns the fields."""


class FakeCoordinator:
    """Stands in for the group coordinator: it answers each API from a queue of its own.

    An API without a queued answer is answered as a healthy group with one member would be.
    """

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.dialled: list[tuple[str, int] | None] = []
        self.open: set[FakeConnection] = set()
        self.asked: list[tuple[str, int]] = []
        """The addresses of the bootstrap servers that are asked next, if a test says so."""
        self._answers: dict[int, list[Answer]] = {}
        self._lock = threading.Lock()

    def answer(self, api_key: int, *answers: Answer) -> None:
        """Queue answers for the next requests of an API, in this order."""
        self._answers.setdefault(api_key, []).extend(answers)

    def refuse(self, api_key: int, *codes: ErrorCode) -> None:
        self.answer(api_key, *({"error_code": code} for code in codes))

    def dial(self, address: tuple[str, int] | None) -> BrokerConnection:
        self.dialled.append(address)
        if address is None and self.asked:
            address = self.asked.pop(0)
        return FakeConnection(self, address)

    def sent(self, api_key: int) -> list[Any]:
        with self._lock:
            return [each for each in self.requests if each.__api_key__ == api_key]

    def serve(self, request: Any, given_up: Callable[[], bool]) -> Any:
        with self._lock:
            self.requests.append(request)
            queue = self._answers.get(request.__api_key__)
            answer = queue.pop(0) if queue else self._healthy(request)
        if isinstance(answer, Exception):
            raise answer
        fields = answer(given_up) if callable(answer) else answer
        response = load_response_schema(request.__api_key__, request.__version__)
        return build_entity(
            response, **{"throttle_time": None, "error_code": ErrorCode.none, **fields}
        )

    def _healthy(self, request: Any) -> Mapping[str, Any]:
        match request.__api_key__:
            case 10:
                return create_coordinator_response()
            case 11:
                return create_join_response(member_id=request.member_id or "member-1")
            case 14:
                return create_sync_response(NOTHING)
            case _:
                return {"members": ()}


class FakeConnection(BrokerConnection):
    """Stands in for a connection to the coordinator; once closed it raises ConnectionLost."""

    def __init__(self, coordinator: FakeCoordinator, address: tuple[str, int] | None) -> None:
        self.address = address
        self._coordinator = coordinator
        coordinator.open.add(self)

    def negotiate_version(self, api_key: int, version_max: int) -> int:
        return version_max

    def send_request(
        self,
        request: Any,
        *,
        timeout_s: float | None = None,
        is_given_up: Callable[[], bool] = lambda: False,
    ) -> Any:
        if self not in self._coordinator.open:
            raise ConnectionLost("the connection was closed")
        try:
            return self._coordinator.serve(request, is_given_up)
        except ConnectionLost:
            self.close()
            raise

    def close(self) -> None:
        self._coordinator.open.discard(self)

    def close_when_unused(self) -> None:
        self.close()


def create_coordinator_response() -> dict[str, Any]:
    """Return a FindCoordinator response with the address of the fake coordinator."""
    host, port = COORDINATOR
    return {"node_id": 1, "host": host, "port": port, "error_message": None}


def create_join_response(
    generation: int = 1,
    member_id: str = "member-1",
    *,
    leader: str = "someone",
    members: Mapping[str, bytes] | None = None,
    skip_assignment: bool = False,
) -> dict[str, Any]:
    """Return a JoinGroup response; `members` has each member's subscription, for the leader.

    The members' instance ids are their member ids.
    """
    entity = vars(__import__("kio.schema.join_group.v9.response", fromlist=["_"]))
    return {
        "generation_id": generation,
        "protocol_type": "consumer",
        "protocol_name": "stream",
        "leader": leader,
        "skip_assignment": skip_assignment,
        "member_id": member_id,
        "members": tuple(
            entity["JoinGroupResponseMember"](
                member_id=each, group_instance_id=each, metadata=metadata
            )
            for each, metadata in (members or {}).items()
        ),
    }


def create_sync_response(tasks: AssignmentInfo) -> dict[str, Any]:
    """Return a SyncGroup response that assigns these tasks."""
    return {"assignment": encode_assignment(tasks)}


class Worker:
    """Holds a member of group `a` that reads topic `in`, and its coordinator."""

    def __init__(
        self,
        *,
        heartbeat_ms: int = 3_600_000,
        give_up_ms: int = 300_000,
        topology: DeclaredTopology = DECLARED,
        fencing: InstanceFencing | None = None,
    ) -> None:
        self.coordinator = FakeCoordinator()
        self.clock = Clock()
        self.stop = threading.Event()
        self.planned: list[dict[str, SubscriptionInfo]] = []
        self.plan: dict[str, AssignmentInfo] | Exception | AssignGroup = {}
        """The assignments that the leader makes, what makes them, or the error that it raises."""
        self.kept_from_abort: list[Collection[str]] = []
        """The members whose transactions were kept, of each abort of the departed ones'."""
        self.may_abort: list[Callable[[], bool]] = []
        """Of each abort whether it may go on."""
        self.member = ClassicProtocolMember(
            "a",
            "worker-0",
            ["in"],
            topology,
            open_connection=self.coordinator.dial,
            assign=self._plan,
            timeouts=MemberTimeouts(45_000, heartbeat_ms, 300_000, give_up_ms),
            is_stopping=self.stop.is_set,
            host=ThreadsOnClock(self.clock),
            abort_departed=self._abort_departed,
            fencing=fencing,
        )

    def join(self, *tasks: str) -> AssignmentInfo | None:
        """Join the group, and wait for the assignment unless the worker is stopped."""
        self.member.start_joining(SubscriptionInfo(tasks))
        return self.member.enter_assigned_generation(HANG_LIMIT_S)

    def _plan(self, members: Mapping[str, SubscriptionInfo]) -> dict[str, AssignmentInfo]:
        self.planned.append(dict(members))
        if isinstance(self.plan, Exception):
            raise self.plan
        return self.plan(members) if callable(self.plan) else self.plan

    def _abort_departed(self, members: Collection[str], is_current: Callable[[], bool]) -> None:
        self.kept_from_abort.append(members)
        self.may_abort.append(is_current)
