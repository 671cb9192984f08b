"""Tell for `millrace plan` what a start would make of the inputs and outputs as they are.

what is found                                         what a start does
inputs that meet by key have other partition counts   it is refused, until one is made like the
                                                      other, or repartitioned
an input, output or dead-letter topic is missing      it is refused, until the topic is created
topics match a pattern                                it reads them, and those that appear later
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from streams.errors import ConfigError, TopologyError
from streams.runtime.assigning.required_topics import check_topics
from streams.topology.build import Topology
from streams.topology.pattern_reviews import review_patterns
from streams.topology.resolve import resolve_topology


class InputReview(NamedTuple):
    """Says why a start would be refused for its inputs; empty where it would not be.

    `missing` may be mended by creating a topic; `conflict` needs a change of the topology.
    `patterns` say what topics that appear may have, and what they would change.
    """

    conflict: str = ""
    missing: str = ""
    patterns: tuple[str, ...] = ()

    @property
    def refusals(self) -> list[str]:
        """Return why a start is refused, all reasons."""
        return [each for each in (self.conflict, self.missing) if each]

    def list_lines(self) -> list[str]:
        """Return the lines that say so."""
        return [
            *(f"refused: a start ends with this: {each}" for each in self.refusals),
            *self.patterns,
        ]


def review_inputs(
    topology: Topology,
    partition_counts: Mapping[str, int],
    dead_letter_topics: Iterable[str] = (),
    bootstrap_servers: str | None = None,
) -> InputReview:
    """Check an application's input topics and their partition counts as its start would.

    `bootstrap_servers` are the brokers that have told the counts; without them nothing is said of
    topics that are not among these. Counts are compared once those of all inputs are known.
    """
    conflict = missing = ""
    reviews = () if bootstrap_servers is None else review_patterns(topology, partition_counts)
    patterns = tuple(each.describe_effects() for each in reviews)
    try:
        topology = resolve_topology(topology, partition_counts)
    except TopologyError as error:
        return InputReview(str(error), "")
    if partition_counts.keys() >= {*topology.input_topics}:
        try:
            topology.derive_partition_counts(
                {t: partition_counts[t] for t in topology.input_topics}
            )
        except TopologyError as error:
            conflict = str(error)
    if bootstrap_servers is not None:
        try:
            check_topics(topology, partition_counts, bootstrap_servers, dead_letter_topics)
        except ConfigError as error:
            missing = str(error)
        except TopologyError as error:
            conflict = str(error)
    return InputReview(conflict, missing, patterns)
