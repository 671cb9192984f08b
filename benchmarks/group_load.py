"""Take one measurement of `benchmarks.groups` in a process of its own.

    python -m benchmarks.group_load '{"what": "group", "servers": "127.0.0.1:9092", ...}'

It reads its task as JSON from the command line and prints its figures as JSON, as
`benchmarks.broker_load` does. Nothing is printed that was not verified: assignments are complete
and disjoint, an answer that isn't the expected one is a RuntimeError, offsets are fetched back.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

import uvloop

from benchmarks import group_wire as wire
from benchmarks.figures import cpu_s, percentile
from benchmarks.group_clients import seconds_to_stable
from benchmarks.group_members import (
    Board,
    ClassicMember,
    ConsumerMember,
    Member,
    ranges,
)
from benchmarks.group_wire import Connection, connect
from benchmarks.streams_members import StreamsMember

STABLE_TIMEOUT_S = 180.0
COMMITTERS = 8
COMMITTED_PARTITIONS = 10
PIPELINED = 10
FRAMES = 50  # Different commits of one member, which it sends again and again.
FILL_DEPTH = 20
GROUPS_A_FETCH = 100
FIRST_ENDPOINT_PORT = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLoad:
    """Describes one measurement, where `count` is that of heartbeats, commits or groups."""

    what: str
    servers: str
    pid: int  # of the broker
    group: str
    topic: str
    topic_id: str
    partitions: int
    protocol: str = "classic"
    members: int = 1
    interval_ms: int = 100  # of heartbeats, where the member chooses
    count: int = 0
    rate: int = 0  # heartbeats a second, where their latency is measured
    has_endpoints: bool = False  # whether members of a streams group have endpoints for queries


async def create_member(
    load: GroupLoad, group: str, board: Board, prepared: Any, number: int = 0
) -> Member:
    """Create a member of the load's protocol and connect it to the broker, without joining."""
    connection = await connect(load.servers)
    match load.protocol:
        case "classic":
            return ClassicMember(connection, group, load.topic, load.interval_ms, board, prepared)
        case "consumer":
            return ConsumerMember(connection, group, load.topic, UUID(load.topic_id), board)
        case _:
            port = FIRST_ENDPOINT_PORT + number if load.has_endpoints else None
            return StreamsMember(connection, group, load.topic, board, port)


async def measure_group(load: GroupLoad) -> dict[str, float]:
    """Measure how soon a group is stable after all members start, one joins, and one leaves.

    With a `count`, also heartbeats while nothing happens.
    """
    board = Board(load.partitions)
    counts = (load.members, load.members + 1)
    prepared = (
        {count: ranges(load.topic, load.partitions, count) for count in range(1, counts[1] + 1)}
        if load.protocol == "classic"
        else {}
    )
    members = [
        await create_member(load, load.group, board, prepared, number)
        for number in range(load.members)
    ]
    newcomer = await create_member(load, load.group, board, prepared, load.members)
    figures: dict[str, float] = {}
    board.expect(load.members)
    begin = time.perf_counter()
    for member in members:
        member.start()
    figures["start_s"] = await board.wait_until_stable(STABLE_TIMEOUT_S) - begin
    board.expect(load.members + 1)
    begin = time.perf_counter()
    newcomer.start()
    figures["join_s"] = await board.wait_until_stable(STABLE_TIMEOUT_S) - begin
    board.expect(load.members)
    begin = time.perf_counter()
    await newcomer.leave()
    figures["leave_s"] = await board.wait_until_stable(STABLE_TIMEOUT_S) - begin
    if load.has_endpoints:
        figures |= count_answer_bytes(members)
    if load.count:
        figures |= await measure_heartbeats(load, members)
    await asyncio.gather(*(member.leave() for member in members))
    return figures


def count_answer_bytes(members: Sequence[Member]) -> dict[str, float]:
    """Return how much members of a streams group were answered since the start."""
    found = [each for each in members if isinstance(each, StreamsMember)]
    return {
        "longest_answer_kb": max(each.longest_answer_bytes for each in found) / 1_000,
        "answers_mb": sum(each.answer_bytes for each in found) / 1_000_000,
    }


async def measure_heartbeats(load: GroupLoad, members: Sequence[Member]) -> dict[str, float]:
    """Measure heartbeats: the latency at a steady rate, and the cost at the highest rate."""
    await asyncio.sleep(2 * load.interval_ms / 1_000)  # By then assignments are acknowledged.
    for member in members:
        member.stop_heartbeats()
    await asyncio.sleep(load.interval_ms / 1_000)
    sent = [(member.connection, *member.heartbeat()) for member in members]
    taken = await measure_latencies(sent, load.rate, load.count // 10)
    before_s = cpu_s(load.pid)
    seconds = await pump_requests(
        [(a, [frame], expected) for a, frame, expected in sent], 1, load.count
    )
    return {
        "heartbeats_per_s": load.count / seconds,
        "heartbeat_cpu_us": (cpu_s(load.pid) - before_s) * 1_000_000 / load.count,
        "heartbeat_p50_ms": 1_000 * percentile(taken, 0.50),
        "heartbeat_p99_ms": 1_000 * percentile(taken, 0.99),
    }


async def measure_latencies(
    sent: Sequence[tuple[Connection, bytes, bytes]], rate: int, count: int
) -> list[float]:
    """Send `rate` requests a second over connections in turn; return the sorted latencies in s.

    A request is sent whether the answer before is there or not.
    """
    taken: list[float] = []
    done = asyncio.Event()
    clock = time.perf_counter
    begin = clock()
    for number in range(count):
        due = begin + number / rate
        if due > clock():
            await asyncio.sleep(due - clock())
        connection, frame, expected = sent[number % len(sent)]

        def note_latency(answer: bytes, at: float = clock(), expected: bytes = expected) -> None:
            taken.append(clock() - at)
            check(answer, expected)
            if len(taken) == count:
                done.set()

        connection.send(frame, note_latency)
    await done.wait()
    return sorted(taken)


def check(answer: bytes, expected: bytes) -> None:
    """Raise RuntimeError if an answer is not as expected."""
    if answer != expected:
        raise RuntimeError(f"{answer!r}, not {expected!r}")


async def pump_requests(
    sent: Sequence[tuple[Connection, Sequence[bytes], bytes]], depth: int, count: int
) -> float:
    """Send `count` requests as fast as answers come, and return the seconds that it took.

    Each connection sends its frames in turn, over and over, with `depth` of them unanswered at any
    time.
    """
    done = asyncio.Event()
    each = count // len(sent)
    left = len(sent)

    def start_pumping(connection: Connection, frames: Sequence[bytes], expected: bytes) -> None:
        state = [0, 0]  # sent, answered

        def send_next(answer: bytes) -> None:
            nonlocal left
            if answer != expected:
                check(answer, expected)
            state[1] += 1
            if state[0] < each:
                connection.send(frames[state[0] % len(frames)], send_next)
                state[0] += 1
            elif state[1] == each:
                left -= 1
                if not left:
                    done.set()

        for number in range(min(depth, each)):
            connection.send(frames[number], send_next)
            state[0] += 1

    begin = time.perf_counter()
    for connection, frames, expected in sent:
        start_pumping(connection, frames, expected)
    await done.wait()
    return time.perf_counter() - begin


async def measure_commits(load: GroupLoad) -> dict[str, float]:
    """Measure commits of 10 partitions by one member, by several members, and pipelined."""
    members: list[Member] = []
    for number in range(COMMITTERS):
        board = Board(load.partitions)
        board.expect(1)
        name = f"{load.group}-{number}"
        members.append(
            await create_member(load, name, board, {1: ranges(load.topic, load.partitions, 1)})
        )
        members[-1].start()
        await board.wait_until_stable(STABLE_TIMEOUT_S)
    await asyncio.sleep(2 * load.interval_ms / 1_000)
    sent = []
    for number, member in enumerate(members):
        member.stop_heartbeats()
        frames = [
            wire.offset_commit(
                f"{load.group}-{number}", *member.identity, load.topic, create_offsets(each)
            )
            for each in range(FRAMES)
        ]
        answer = await member.connection.call(frames[0])
        wire.check_committed(answer)
        sent.append((member.connection, frames, answer))
    figures: dict[str, float] = {}
    alone = load.count // COMMITTERS
    for name, by, depth, count in (
        ("alone", sent[:1], 1, alone),
        ("together", sent, 1, load.count),
        ("pipelined", sent, PIPELINED, load.count),
    ):
        before_s = cpu_s(load.pid)
        seconds = await pump_requests(by, depth, count)
        cpu_us = (cpu_s(load.pid) - before_s) * 1_000_000 / count
        figures |= {f"{name}_per_s": count / seconds, f"{name}_cpu_us": cpu_us}
    last = create_offsets((load.count // COMMITTERS - 1) % FRAMES)
    names = [f"{load.group}-{number}" for number in range(COMMITTERS)]
    await check_fetched(members[0].connection, dict.fromkeys(names, last))
    await asyncio.gather(*(member.leave() for member in members))
    return figures


def create_offsets(seed: int) -> dict[int, int]:
    """Create the offsets that a group commits, different for each `seed`."""
    return {partition: 1_000 * seed + partition for partition in range(COMMITTED_PARTITIONS)}


async def check_fetched(connection: Connection, expected: dict[str, dict[int, int]]) -> None:
    """Fetch the groups' offsets, and raise RuntimeError unless they are exactly as expected."""
    names = list(expected)
    for start in range(0, len(names), GROUPS_A_FETCH):
        asked = names[start : start + GROUPS_A_FETCH]
        found = wire.fetched_offsets(await connection.call(wire.offset_fetch(asked)))
        for name in asked:
            if found[name] != (0, expected[name]):
                raise RuntimeError(f"{name}: {found[name]}, not {expected[name]}")


async def fill_groups(load: GroupLoad) -> dict[str, float]:
    """Commit different offsets for each of `count` groups, and verify them."""
    connections = [await connect(load.servers) for _ in range(COMMITTERS)]
    names = filled(load)
    sent = []
    for number, connection in enumerate(connections):
        mine = range(number, load.count, COMMITTERS)
        frames = [
            wire.offset_commit(names[each], -1, "", load.topic, create_offsets(each))
            for each in mine
        ]
        answer = await connection.call(frames[0])
        wire.check_committed(answer)
        sent.append((connection, frames, answer))
    await pump_requests(sent, FILL_DEPTH, load.count)
    return await verify_groups(load)


async def verify_groups(load: GroupLoad) -> dict[str, float]:
    """Verify that the broker has the offsets of every group that `fill_groups` made."""
    connection = await connect(load.servers)
    expected = {name: create_offsets(number) for number, name in enumerate(filled(load))}
    await check_fetched(connection, expected)
    connection.close()
    return {}


def filled(load: GroupLoad) -> list[str]:
    """Return the names of the groups that `fill_groups` commits offsets for."""
    return [f"{load.group}-{number}" for number in range(load.count)]


def measure_clients(load: GroupLoad) -> dict[str, float]:
    """Measure how soon a group is stable whose real consumers all start at once."""
    where = load.servers, load.group, load.topic, load.partitions
    return {"start_s": seconds_to_stable(*where, load.protocol, load.members)}


def on_a_loop(
    measure: Callable[[GroupLoad], Coroutine[Any, Any, dict[str, float]]],
) -> Callable[[GroupLoad], dict[str, float]]:
    """Wrap an asynchronous measurement so that a plain call runs it on an event loop."""
    return lambda load: uvloop.run(measure(load))


MEASURES: dict[str, Callable[[GroupLoad], dict[str, float]]] = {
    "group": on_a_loop(measure_group),
    "commits": on_a_loop(measure_commits),
    "fill": on_a_loop(fill_groups),
    "verify": on_a_loop(verify_groups),
    "clients": measure_clients,
}


def command(load: GroupLoad) -> list[str]:
    """Return the command line of a process that takes the measurement `load`."""
    return [sys.executable, "-m", "benchmarks.group_load", json.dumps(asdict(load))]


def main() -> None:
    """Take the measurement that the command line describes, and print its figures as JSON."""
    load = GroupLoad(**json.loads(sys.argv[1]))
    gc.disable()  # A measurement is short enough to do without.
    print(json.dumps(MEASURES[load.what](load)))


if __name__ == "__main__":
    main()
