"""Define an application under simulation by its topics, its input and its expected output."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from streams.topology.build import Topology

if TYPE_CHECKING:
    from tests.simulation.runtime.world import RuntimeWorld


class Input(NamedTuple):
    """Represents a record of the input.

    `partition` -1: by the hash of its key.
    """

    topic: str
    partition: int
    key: str
    value: bytes | None
    time_ms: int


class Application(ABC):
    """Defines an application whose results a plain loop over its input can compute.

    One instance belongs to one history; `inputs` is what was written to its topics, in order.
    """

    topics: ClassVar[Mapping[str, int]]
    """Topics created before the workers start, with their numbers of partitions."""
    settings: ClassVar[Mapping[str, Any]] = {}
    """Fields of the application's configuration."""

    def __init__(self) -> None:
        self.inputs: list[Input] = []

    @abstractmethod
    def topology(self, *, caching: bool, persistent: bool) -> Topology: ...

    def first(self, now_ms: int) -> Iterator[Input]:
        """Generate the records that are there before the workers start."""
        return iter(())

    @abstractmethod
    def feed(self, random: Random, now_ms: int) -> Iterator[Input]:
        """Generate one thing that happens: a record, or some that belong together."""

    @abstractmethod
    def problem(self, world: RuntimeWorld) -> str:
        """Compare the output with the input; return what is wrong, or an empty string.

        Called at the end of a history, and with exactly once only.
        """


def difference(found: Sequence[Any], wanted: Sequence[Any]) -> str:
    """Describe the first difference of two lists."""
    at = next(
        (i for i, (a, b) in enumerate(zip(found, wanted, strict=False)) if a != b),
        min(len(found), len(wanted)),
    )
    return (
        f"{found[at : at + 3]} where {wanted[at : at + 3]} should be ({len(found)}/{len(wanted)})"
    )
