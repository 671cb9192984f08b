"""Define the two versions of the application that members run: the larger has a store more."""

from __future__ import annotations

from functools import cache

from streams import App, Processor, Record, Store, serdes
from streams.topology.build import Topology
from tests.simulation.runtime.topologies import APPLICATION

STATEFUL, STATELESS, COPIES = "in", "other", "copies"
PARTITIONS = {STATEFUL: 24, STATELESS: 8, COPIES: 1}
STORES = (("seen",), ("seen", "more"))
"""The stores of each version."""


class _Ignore(Processor[str, str, str, str]):
    def process(self, record: Record[str, str]) -> None:
        raise AssertionError("no records are processed here")


@cache
def build_version(version: int) -> Topology:
    """Return the topology of a version: 0, or 1 with a store more."""
    app = App(APPLICATION)
    app.stream(STATEFUL, key=serdes.string, value=serdes.string).process(
        _Ignore,
        stores=[
            Store.persistent(name, key=serdes.string, value=serdes.string)
            for name in STORES[version]
        ],
        key=serdes.string,
        value=serdes.string,
    )
    app.stream(STATELESS, key=serdes.string, value=serdes.string).to(COPIES)
    return app.topology()


def list_tasks() -> dict[str, bool]:
    """Return the names of all tasks, which are the same in both versions, and who has state."""
    numbers = {min(sub.sources): sub.number for sub in build_version(0).subtopologies}
    return {
        f"{numbers[topic]}_{number}": topic == STATEFUL
        for topic in (STATEFUL, STATELESS)
        for number in range(PARTITIONS[topic])
    }
