"""Measure how long partitions stand still when a node of a cluster is killed.

    python -m benchmarks.node_loss [--systems millrace,kafka-streams] [--rounds 2] [--quick]

Three nodes of Kafka have every partition three times. The application is that of
`benchmarks.rebalance`, on two workers with standby tasks. Each node in turn leads all partitions of
the offsets and transactions topics, so that it is every coordinator, and a third of the others;
then it is killed with `kill -9`. A pause is the longest time between two committed results of a
partition, as a consumer sees them, and has the time in which the cluster notices the loss
(`broker.session.timeout.ms`). Every result is checked as it comes; a run with a wrong one is void.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Annotated
from uuid import uuid4

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.fleet import SYSTEMS, FleetSettings
from benchmarks.rebalance import PARTITIONS, VALUE_BYTES, Run, start_application
from benchmarks.recorded import record
from tests.cluster.nodes import NODES, SESSION_MS, KafkaCluster
from tests.cluster.placement import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, Placement

WORKERS = ("one", "two")
KEYS = 200
"""Keys of each partition: what a store holds makes no difference, as none is restored."""
GROUP_SESSION_MS, HEARTBEAT_MS, PROBING_MS, ACCEPTABLE_LAG = 10_000, 3_000, 5_000, 10_000
_STEADY_S, _STEADY_LIMIT_S, _RESULT_S = 15.0, 300.0, 1.0

console = Console(width=110)


def measure_loss(run: Run, cluster: KafkaCluster, placement: Placement, node: int) -> list[float]:
    """Kill a node that leads, start it again, and return the pause in s of each partition."""
    application = run.settings.application
    placement.spread_leaders(*(f"{application}-{each}" for each in ("in", "out", "sums-changelog")))
    placement.lead_all(node, OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
    wait_until_steady(run)
    before_s = time.monotonic()
    cluster.nodes[node].kill()
    wait_until_steady(run)
    after_s = time.monotonic()
    pauses = [run.watch.find_longest_pause(each, before_s, after_s) for each in range(PARTITIONS)]
    cluster.launch_nodes([node])
    return pauses


def wait_until_steady(run: Run) -> None:
    """Wait until each partition has had results at least every second for some time.

    Raises: RuntimeError if a worker has ended, or some partition goes on pausing.
    """
    deadline_s = time.monotonic() + _STEADY_LIMIT_S
    paused_at_s = time.monotonic()
    while time.monotonic() - paused_at_s < _STEADY_S:
        run.fleet.check_running()
        if run.watch.seconds_since_result() > _RESULT_S:
            paused_at_s = time.monotonic()
        if time.monotonic() > deadline_s:
            raise RuntimeError(f"a partition has had no results for {_STEADY_LIMIT_S} s")
        time.sleep(0.05)


def measure_system(system: str, cluster: KafkaCluster, nodes: tuple[int, ...]) -> list[list[float]]:
    """Return the pauses of each loss. Raises RuntimeError for a wrong result or store."""
    servers = cluster.bootstrap_servers
    times = (PROBING_MS, GROUP_SESSION_MS, HEARTBEAT_MS)
    application = f"{system}-{uuid4().hex[:6]}"
    settings = FleetSettings(servers, application, VALUE_BYTES, 1, *times, ACCEPTABLE_LAG)
    with (
        tempfile.TemporaryDirectory(prefix="node-loss-") as directory,
        start_application(
            system, settings, Path(directory), KEYS, workers=WORKERS, replicas=len(NODES)
        ) as run,
    ):
        placement = Placement(servers)
        found = [measure_loss(run, cluster, placement, node) for node in nodes]
        run.finish()
        return found


def print_table(found: dict[str, list[list[float]]]) -> None:
    """Print the pauses of each system: of all its losses together, and of the worst of them."""
    table = Table(
        title=f"Pause of a partition in s when a node is killed; its session is {SESSION_MS} ms"
    )
    for column in ("system", "losses", "median", "longest", "longest of each loss"):
        table.add_column(column, justify="left" if column == "system" else "right")
    for system, losses in found.items():
        pauses = [pause for each in losses for pause in each]
        each_longest = ", ".join(f"{max(each):.1f}" for each in losses)
        table.add_row(
            *(system, str(len(losses)), f"{median(pauses):.1f}", f"{max(pauses):.1f}", each_longest)
        )
    console.print(table)


def main(
    systems: Annotated[str, typer.Option(help="Which systems, with commas.")] = ",".join(SYSTEMS),
    rounds: Annotated[int, typer.Option(help="Applications of each system, in turn.")] = 2,
    quick: Annotated[bool, typer.Option(help="Kill one node, once for each system.")] = False,
) -> None:
    """Measure each system on the same cluster in turn, and print them beside each other."""
    found: dict[str, list[list[float]]] = {each: [] for each in systems.split(",")}
    with closing(KafkaCluster()) as cluster:
        cluster.start()
        for number in range(1 if quick else rounds):
            for system in found:
                losses = measure_system(system, cluster, NODES[:1] if quick else NODES)
                console.print(f"round {number}, {system}: {[max(each) for each in losses]}")
                found[system] += losses
    for system, losses in found.items():
        record("node loss", "pause", system, "s", [pause for each in losses for pause in each])
    print_table(found)


if __name__ == "__main__":
    typer.run(main)
