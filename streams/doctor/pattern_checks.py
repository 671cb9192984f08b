"""Check what the patterns of an application match, and what a topic that appears would change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streams.command_lines import format_command
from streams.doctor.findings import DoctorFinding, create_fine_finding, create_warning_finding
from streams.topology.build import Topology
from streams.topology.pattern_reviews import review_patterns

PATTERNS = "topics of patterns"


def check_patterns(
    topology: Topology, partition_counts: Mapping[str, int]
) -> Iterator[DoctorFinding]:
    """Say of each pattern which topics may appear; find a pattern that matches none.

    `partition_counts` are the partitions of all topics that the user may describe.
    """
    for review in review_patterns(topology, partition_counts):
        if review.topics:
            yield create_fine_finding(PATTERNS, review.describe_effects())
            continue
        yield create_warning_finding(
            PATTERNS,
            f"{review.pattern!r} matches no topic that this user may describe",
            "no task reads by it; a topic that appears is read within metadata_max_age_ms",
            "compare the expression, which has to match whole names, with "
            f"{format_command('topics list')}",
        )
