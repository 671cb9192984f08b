"""Make the stores of a worker that counts, whose group has heard of its member at 100 s."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.membership.protocol import AssignmentInfo, EndpointTasks
from streams.queries.answer_ages import ThreadAssignmentTimes
from streams.queries.endpoint_client import EndpointClient
from streams.queries.local_stores import LocalStores
from streams.queries.routed_reads import RoutedReads
from tests.unit.streams.queries.served import TOKEN
from tests.unit.streams.runtime.world import World, build_counting_topology

NOW_S = 100.0
_FIRST_TASK = AssignmentInfo(("0_0",), ())


def create_counted_stores(
    world: World | None, assigned: AssignmentInfo = _FIRST_TASK, **given: Any
) -> LocalStores:
    """Create the stores of a world's tasks, or of none, at 100 s; `given` is for `LocalStores`.

    `heard_s` in it is when the group was heard of last, `topology` another one than that counts.
    """
    times = ThreadAssignmentTimes("t", assigned, 0.0, given.pop("heard_s", NOW_S))
    list_tasks: Callable[[], list[Any]] = list
    if world is not None:
        list_tasks = lambda: list(world.loop.tasks.values())  # noqa: E731
    defaults: dict[str, Any] = {
        "list_tasks": list_tasks,
        "list_assignments": lambda: [times],
        "fetch_partition_counts": lambda: {"in": 1},
        "monotonic_s": lambda: NOW_S,
        "now_ms": lambda: 100_000,
        "session_timeout_s": 45.0,
    }
    topology = given.pop("topology", None) or build_counting_topology()
    return LocalStores(topology, **defaults | given)


def create_routed_reads(endpoint: str) -> RoutedReads:
    """Return the reads of a worker that knows `endpoint` for the one that has all tasks."""
    assigned = AssignmentInfo((), (), endpoints={endpoint: EndpointTasks(("0_0",), ())})
    stores = create_counted_stores(None, assigned)
    stores.count_partitions("c")
    return RoutedReads(stores, lambda: EndpointClient(TOKEN), "127.0.0.1:1")
