"""Sample how far a process has come, and compute from that its steady rate.

The first quarter of the output is not counted: in it a JVM compiles its hot code, and stores are
empty. It is the same for all ways. Where records pass through a topic of the application, the first
step may be far ahead of the output, and its work would be missing from what is left: there a run
counts from the first commit of input on until the last output, for all ways, with a JVM's warm-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

WARM_UP_SHARE = 0.25
_COMMITS_MIN = 3


class Sample(NamedTuple):
    """Holds how much output is committed at a time, and the processor time used until then.

    `consumed`: how many input records are committed as consumed, where that is sampled.
    """

    at_s: float
    committed: int
    cpu_s: float
    consumed: int = 0


class PeerFigures(NamedTuple):
    """Holds what one run has taken."""

    records_per_s: float
    cpu_s_per_million: float
    peak_mb: float


class VoidRun(RuntimeError):
    """Says why a run has no figures: its output is wrong, or it ended, or took too long."""


def has_settled(
    samples: Sequence[Sample], at_least: int, settle_s: float, *, consumed: int = 0
) -> bool:
    """Tell whether so much output is committed, and no more has come for so long.

    Markers of transactions count as output, so that reaching `at_least` alone is not the end. Nor
    is it with an internal topic while less input than `consumed` is committed: records may pass
    through that topic for seconds before output comes of them.
    """
    last = samples[-1]
    if last.committed < at_least or last.consumed < consumed:
        return False
    for sample in reversed(samples):
        if sample.committed < last.committed:
            return False
        if last.at_s - sample.at_s >= settle_s:
            return True
    return False


def compute_figures(
    samples: Sequence[Sample], records: int, peak_mb: float, *, by_input: bool = False
) -> PeerFigures:
    """Compute the figures of a run whose input has so many records.

    The records count in proportion to the output that was committed; `by_input` all of them,
    with the first commit interval for nothing. Raises VoidRun if there are too few commits to tell.
    """
    total = samples[-1].committed
    if by_input:
        begin = next(each for each in samples if each.consumed or each.committed)
        done = float(records)
    else:
        begin = next(each for each in samples if each.committed >= total * WARM_UP_SHARE)
        done = records * (total - begin.committed) / total
    end = next(each for each in samples if each.committed == total)
    commits = {each.committed for each in samples if begin.at_s <= each.at_s <= end.at_s}
    if len(commits) < _COMMITS_MIN:
        raise VoidRun(f"{len(commits)} commits are too few to tell: give it more records")
    cpu_s = end.cpu_s - begin.cpu_s
    return PeerFigures(done / (end.at_s - begin.at_s), cpu_s / done * 1_000_000, peak_mb)
