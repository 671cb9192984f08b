"""Test that a group goes on where its leader dies in the middle of a round that moves a task.

The leader speaks the protocol by hand, so that it dies at an exact point: it runs no task, takes
one away from a worker that has all, and is gone before it has given it to another worker.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.errors import Code
from streams.membership.protocol import (
    AssignmentInfo,
    decode_subscription,
    encode_assignment,
)
from tests.brokers import IN_CI
from tests.conformance.members import Member
from tests.conformance.wire import Api, Client
from tests.integration.cluster import PARTITIONS, Topics
from tests.integration.flow import ENOUGH, Flow
from tests.integration.test_rebalances import partitions_of, start_copy, subscribe
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = IN_CI

TASKS = [f"0_{number}" for number in range(PARTITIONS)]
MOVING, *STAYING = TASKS
EVERYTHING = set(range(PARTITIONS))
SESSION_MS = 10_000
"""The session of the leader: it is waited for, and begins with the last thing that it sends."""


class Leader:
    """Leads a group by hand, and stays alive while it waits."""

    def __init__(self, client: Client, topics: Topics) -> None:
        self._topics = topics
        self._member = Member(
            client,
            topics.application,
            "leader",
            protocols=("stream",),
            metadata=self._subscribe(-1),
            session_timeout_ms=SESSION_MS,
        )
        self._last_code = Code.NONE
        self.others: list[str] = []
        """The ids of the other members, as of its last join."""

    def join(self) -> None:
        """Join, wait for all others, and become or stay the leader."""
        if self._member.generation >= 0:
            self._member.metadata = self._subscribe(self._member.generation)
        joined = self._member.join()
        assert (joined.error_code, joined.leader) == (Code.NONE, self._member.member_id)
        self._infos = {m.member_id: decode_subscription(m.metadata) for m in joined.members}
        self.others = sorted(self._infos.keys() - {self._member.member_id})

    def assign(
        self, *, tasks: list[str], revoked: list[str] | None = None, to: str | None = None
    ) -> None:
        """Assign tasks to one member, and none to all others."""
        assignments = {member: self._encode(member, [], []) for member in self._infos}
        if to is not None:
            assignments[to] = self._encode(to, tasks, revoked or [])
        assert self._member.sync(assignments).error_code == Code.NONE

    def find_owner(self) -> str:
        """Return the member that owned all tasks when it joined last."""
        (owner,) = (m for m in self.others if sorted(self._infos[m].tasks) == TASKS)
        return owner

    def wait_until(self, condition: Callable[[], bool], what: Callable[[], str]) -> None:
        """Wait for a condition, with heartbeats, whatever is answered to them."""

        def look() -> bool:
            self._last_code = self._member.heartbeat()
            assert self._last_code in (Code.NONE, Code.REBALANCE_IN_PROGRESS), self._last_code
            return condition()

        wait_until(look, what=what)

    def wait_for_rebalance(self) -> None:
        """Wait until the coordinator calls for another join."""
        self.wait_until(
            lambda: self._last_code is Code.REBALANCE_IN_PROGRESS, lambda: "a rebalance"
        )

    def wait_for_more(self, flow: Flow) -> None:
        """Wait until more of what is written from now on has been committed, of each partition."""
        wanted = {n: flow.written[n] + ENOUGH for n in EVERYTHING}
        self.wait_until(
            lambda: all(len(flow.committed[n]) >= wanted[n] for n in EVERYTHING),
            lambda: f"{ {n: len(seen) for n, seen in flow.committed.items()} } of {wanted}",
        )

    def _subscribe(self, generation: int) -> bytes:
        return subscribe(self._topics, generation)

    def _encode(self, member: str, tasks: list[str], revoked: list[str]) -> bytes:
        partitions = tuple((self._topics.source, int(task.partition("_")[2])) for task in tasks)
        declared = self._infos[member].topology
        fingerprint = "" if declared is None else declared.fingerprint
        return encode_assignment(
            AssignmentInfo(
                tuple(tasks),
                partitions,
                fingerprint=fingerprint,
                leader=fingerprint,
                revoked=tuple(revoked),
            )
        )


@pytest.mark.sampled(1)
@pytest.mark.parametrize("has_joined", [False, True], ids=["before it joins", "before it assigns"])
def test_a_task_that_was_revoked_is_assigned_by_the_next_leader(
    topics: Topics, tmp_path: Path, has_joined: bool
) -> None:
    client = Client(topics.servers)
    # Kafka creates the topic of its groups for the first that looks for a coordinator.
    client.send(Api.FIND_COORDINATOR, 2, key=topics.application, key_type=0)
    leader = Leader(client, topics)
    leader.join()
    leader.assign(tasks=[])
    with start_copy(topics, tmp_path / "first") as first, Flow(topics) as flow:
        leader.wait_for_rebalance()
        leader.join()
        (worker,) = leader.others
        leader.assign(tasks=TASKS, to=worker)
        leader.wait_for_more(flow)
        with start_copy(topics, tmp_path / "second") as second:
            leader.wait_for_rebalance()
            leader.join()
            leader.assign(tasks=STAYING, revoked=[MOVING], to=leader.find_owner())
            leader.wait_for_rebalance()  # the first worker has given the task up
            if has_joined:
                leader.join()
            client.close()

            def are_shared() -> bool:
                return (
                    partitions_of(first) | partitions_of(second) == EVERYTHING
                    and not partitions_of(first) & partitions_of(second)
                    and bool(partitions_of(second))
                )

            wait_until(
                are_shared, what=lambda: f"{partitions_of(first)} and {partitions_of(second)}"
            )
            for running in (first, second):
                running.wait_for("RUNNING", HANG_LIMIT_S)
            flow.wait_for_more(EVERYTHING)
        flow.wait_for_more(EVERYTHING)
    flow.check()
