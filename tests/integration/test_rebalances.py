"""Test that what does not move is committed on while a group rebalances."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from coordinator.errors import Code
from streams.membership.protocol import SubscriptionInfo, decode_assignment, encode_subscription
from streams.processes.running import RunningApp
from streams.topology.declared import declare_topology
from streams.topology.description import describe_topology
from tests.conformance.members import Member
from tests.conformance.wire import Client
from tests.integration.cluster import PARTITIONS, Topics, Worker
from tests.integration.flow import Flow
from tests.integration.worker import build
from tests.processes import HANG_LIMIT_S, UNREACHED_MS, wait_until


def start_copy(topics: Topics, state: Path) -> RunningApp:
    """Start a worker that copies, and whose session doesn't end by itself."""
    return build(
        topics.application,
        topics.source,
        topics.target,
        kind="copy",
        bootstrap_servers=topics.servers,
        state_dir=state,
        heartbeat_interval_ms=200,
        session_timeout_ms=UNREACHED_MS,
        commit_interval_ms=50,
    ).start()


@contextmanager
def running_copy(topics: Topics, state: Path) -> Iterator[RunningApp]:
    with start_copy(topics, state) as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        yield running


def subscribe(topics: Topics, generation: int) -> bytes:
    """Return what a member says that runs the same copy and owns no tasks."""
    app = build(topics.application, topics.source, topics.target, kind="copy")
    declared = declare_topology(describe_topology(app.topology()))
    return encode_subscription(
        [topics.source], SubscriptionInfo((), generation=generation), declared
    )


def partitions_of(running: RunningApp) -> set[int]:
    return {int(task.name.partition("_")[2]) for task in running._list_tasks()}


def wait_for_tasks(running: RunningApp, count_: int) -> None:
    wait_until(
        lambda: len(partitions_of(running)) == count_ and running.state == "RUNNING",
        what=lambda: f"{count_} tasks, not {partitions_of(running)}",
    )


def test_a_member_that_does_not_join_again_holds_up_nobody(topics: Topics, tmp_path: Path) -> None:
    with running_copy(topics, tmp_path) as running, Flow(topics) as flow:
        flow.wait_for_more(set(range(PARTITIONS)))
        with Client(topics.servers) as client:
            sent = subscribe(topics, generation=-1)
            slow = Member(client, topics.application, "slow", protocols=("stream",), metadata=sent)
            assert slow.join().error_code == Code.NONE
            answer = slow.sync()
            assert decode_assignment(answer.assignment).tasks == (), "nothing is revoked yet"
            # The worker has revoked a task, and joins again; this member does not.
            wait_until(lambda: slow.heartbeat() is Code.REBALANCE_IN_PROGRESS, what="a rebalance")
            wait_for_tasks(running, PARTITIONS - 1)
            flow.wait_for_more(partitions_of(running))
            assert slow.heartbeat() is Code.REBALANCE_IN_PROGRESS
            slow.metadata = subscribe(topics, generation=slow.generation)
            assert slow.join().error_code == Code.NONE
            (task,) = decode_assignment(slow.sync().assignment).tasks
            assert int(task.partition("_")[2]) not in partitions_of(running)
            assert slow.leave() is Code.NONE
        wait_for_tasks(running, PARTITIONS)
        flow.wait_for_more(set(range(PARTITIONS)))
    flow.check()


def test_what_does_not_move_is_committed_while_a_worker_comes_and_goes(
    topics: Topics, new_worker: Callable[..., Worker], tmp_path: Path
) -> None:
    everything = set(range(PARTITIONS))
    with running_copy(topics, tmp_path / "first") as running, Flow(topics) as flow:
        flow.wait_for_more(everything)
        began_s = time.monotonic()
        other = new_worker(kind="copy", state="another-machine", session_timeout_ms=UNREACHED_MS)
        other.start()
        wait_for_tasks(running, PARTITIONS - 1)
        kept = partitions_of(running)
        flow.wait_for_more(everything)
        other.finish()
        wait_for_tasks(running, PARTITIONS)
        flow.wait_for_more(everything)
        pauses = {n: flow.longest_pause_ms(n, began_s) for n in sorted(everything)}
        print(f"longest pauses in ms: {pauses}, of which {kept} stayed; {running.metrics()}")
    flow.check()
