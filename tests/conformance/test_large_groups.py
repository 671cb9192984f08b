"""Test groups of so many members and tasks that their record is near the brokers' limit."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial

import pytest

from streams import App, serdes
from streams.common.host import SystemHost
from streams.connection.security import PLAINTEXT
from streams.errors import StreamsError
from streams.membership.classic_member import ClassicProtocolMember
from streams.membership.connection import BrokerConnection, connect_to_any_server
from streams.membership.group_member import AssignGroup, MembershipSignal, MemberTimeouts
from streams.membership.group_record import RECORD_BYTES_MAX
from streams.membership.protocol import AssignmentInfo, SubscriptionInfo
from streams.runtime.assigning.group_size_limits import fetch_group_size_limits
from streams.runtime.clients import Admin
from streams.topology.declared import DeclaredTopology, declare_topology, encode_topology
from streams.topology.description import describe_topology
from tests import brokers
from tests.brokers import Broker
from tests.processes import HANG_LIMIT_S, UNREACHED_MS, wait_until

TASKS, PROCESSES, THREADS = 2_000, 16, 8
TOPICS = [f"application-topic-{number}" for number in range(10)]
WAIT_S = 10.0
STEPS = 500
REQUEST_BYTES_MAX = 70_000
NO_STEPS = DeclaredTopology("no steps", {}, {})


def declare_many_steps() -> DeclaredTopology:
    """Return a topology of 500 steps, of which each seventh counts by another key."""
    app = App("application")
    stream = app.stream("input", key=serdes.string, value=serdes.string)
    for number in range(STEPS // 7):
        stream = stream.map_values(lambda value: value)
        grouped = stream.group_by(lambda key, value: value, key=serdes.string)
        grouped.count(store=f"store-{number}").to_stream().to(f"output-{number}")
    description = describe_topology(app.topology())
    assert sum(len(sub.steps) for sub in description.subtopologies) >= STEPS
    return declare_topology(description)


def list_tasks(seed: int) -> list[str]:
    tasks = [f"{sub}_{n}" for sub in range(len(TOPICS)) for n in range(TASKS // len(TOPICS))]
    random.Random(seed).shuffle(tasks)
    return tasks


def assign_all(members: Mapping[str, SubscriptionInfo]) -> dict[str, AssignmentInfo]:
    """Deal all tasks out, each to one member, and as a standby to another."""
    tasks, count = list_tasks(1), len(members)
    assigned = {}
    for place, member in enumerate(sorted(members)):
        active, standby = tasks[place::count], tasks[(place + 1) % count :: count]
        partitions = [
            [(TOPICS[int(t.split("_")[0])], int(t.split("_")[1])) for t in each]
            for each in (active, standby)
        ]
        assigned[member] = AssignmentInfo(
            tuple(active),
            tuple(partitions[0]),
            standby=tuple(standby),
            following=tuple(partitions[1]),
        )
    return assigned


def open_connection(servers: str, address: tuple[str, int] | None) -> BrokerConnection:
    def connect(to: tuple[str, int]) -> BrokerConnection:
        return BrokerConnection(to, "millrace", WAIT_S, threading.Lock(), PLAINTEXT, lambda: False)

    return connect_to_any_server(servers, connect) if address is None else connect(address)


def create_member(
    broker: Broker,
    group: str,
    number: int,
    assign: AssignGroup,
    topology: DeclaredTopology = NO_STEPS,
) -> ClassicProtocolMember:
    return ClassicProtocolMember(
        group,
        f"{group}-{number}",
        TOPICS,
        topology,
        open_connection=partial(open_connection, broker.bootstrap_servers),
        assign=assign,
        timeouts=MemberTimeouts(30_000, 500, 60_000, UNREACHED_MS),
        is_stopping=lambda: False,
        host=SystemHost(),
        fetch_size_limits=lambda: fetch_group_size_limits(create_admin(broker.bootstrap_servers)),
    )


def create_admin(servers: str) -> Admin:
    return Admin({"bootstrap.servers": servers}, servers, WAIT_S)


def describe_state(number: int) -> SubscriptionInfo:
    """Return what thread `number` tells of its tasks, and the first of a process of all state."""
    tasks = list_tasks(number // THREADS)
    held = {task: 10**8 + int(task[2:]) * 7_919 for task in tasks[: 2 * TASKS // PROCESSES]}
    return SubscriptionInfo(
        (),
        former=tuple(tasks[:16]),
        generation=-1,
        process="p" * 36,
        directory="d" * 36,
        offsets={} if number % THREADS else held,
        standby=tuple(tasks[16:32]),
    )


def test_2_000_tasks_on_128_threads_join(broker: Broker, unique: Callable[[str], str]) -> None:
    group = unique("large")
    declared = declare_many_steps()
    assert PROCESSES * THREADS * len(encode_topology(declared)) < RECORD_BYTES_MAX / 3
    members = [
        create_member(broker, group, n, assign_all, declared) for n in range(PROCESSES * THREADS)
    ]
    with ExitStack() as exits:
        assigned: dict[int, AssignmentInfo] = {}

        def join(number: int) -> None:
            members[number].start_joining(describe_state(number))

        def is_assigned() -> bool:
            for number, member in enumerate(members):
                if member.is_joining:
                    if (taken := member.enter_assigned_generation()) is not None:
                        assigned[number] = taken
                elif member.read_current_signal_or_raise() is not MembershipSignal.NOTHING:
                    join(number)
            generations = {member.current_membership.generation for member in members}
            is_one = len(generations) == 1 and not any(member.is_joining for member in members)
            return is_one and len(assigned) == len(members)

        for number, member in enumerate(members):
            exits.callback(member.leave_group)
            join(number)
        wait_until(is_assigned, what="one generation of all members")
    tasks = [task for each in assigned.values() for task in each.tasks]
    assert sorted(tasks) == sorted(list_tasks(0))


def test_a_record_that_no_broker_accepts_is_refused_with_its_size(
    broker: Broker, unique: Callable[[str], str]
) -> None:
    group = unique("too-large")
    member = create_member(broker, group, 0, assign_all)
    too_much = tuple(f"0_{number}" for number in range(150_000))
    member.start_joining(SubscriptionInfo((), former=too_much))
    with pytest.raises(StreamsError, match=rf"would have \d+ bytes.* accept {RECORD_BYTES_MAX} "):
        member.enter_assigned_generation(HANG_LIMIT_S)
    member.leave_group()


@pytest.mark.sampled(1, by="kind")
@pytest.mark.parametrize("kind", ["embedded", "kafka"])
def test_a_request_that_no_broker_accepts_is_refused_with_its_size(
    kind: str, unique: Callable[[str], str]
) -> None:
    if reason := brokers.reason_to_skip(kind):
        assert not brokers.in_ci(), reason
        pytest.skip(reason)
    settings = {"socket.request.max.bytes": str(REQUEST_BYTES_MAX)}
    broker = brokers.make(kind, {**brokers.SETTINGS, **settings})
    try:
        broker.start()
        group = unique("too-large")
        joining = create_member(broker, group, 0, assign_all)
        joining.start_joining(SubscriptionInfo((), former=("0_0",) * 20_000))
        refused = rf"JoinGroup would have \d+ bytes, and the brokers accept {REQUEST_BYTES_MAX} "
        with pytest.raises(StreamsError, match=refused):
            joining.enter_assigned_generation(HANG_LIMIT_S)

        def assign_much(members: Mapping[str, SubscriptionInfo]) -> dict[str, AssignmentInfo]:
            return dict.fromkeys(members, AssignmentInfo(("0_0",) * 20_000, ()))

        leading = create_member(broker, group, 1, assign_much)
        leading.start_joining(SubscriptionInfo(()))
        with pytest.raises(StreamsError, match="SyncGroup would have"):
            leading.enter_assigned_generation(HANG_LIMIT_S)
    finally:
        broker.close()
