"""Find stores and repartition topics that a new version has under another name."""

from __future__ import annotations

from collections.abc import Callable
from difflib import SequenceMatcher

from streams.topology.name_origin import is_generated_name, strip_step_number
from streams.topology.version_index import VersionIndex


def match_renamed_names(
    old: list[str],
    new: list[str],
    before: VersionIndex,
    after: VersionIndex,
    is_compatible: Callable[[str, str], bool],
) -> dict[str, str]:
    """Return the likely new name of each store or topic that was renamed, by its old name.

    The same steps must lead to both, or the names differ in their number alone, or the inputs are
    the same and one of the names was given. Where several fit, it is the one whose given name is
    nearest, and then the first in the topology.
    """

    def keeps_name(name: str) -> bool:
        has_same_steps = before.lineages.get(name) == after.lineages.get(name)
        return name in old and name in new and (has_same_steps or not is_generated_name(name))

    def same_steps(a: str, b: str) -> bool:
        return before.lineages[a] == after.lineages[b]

    def same_name(a: str, b: str) -> bool:
        return a not in new and b not in old and strip_step_number(a) == strip_step_number(b)

    def same_inputs(a: str, b: str) -> bool:
        is_named = not is_generated_name(a) or not is_generated_name(b)
        return (
            is_named
            and a not in new
            and b not in old
            and before.lineages[a].inputs == after.lineages[b].inputs
        )

    renamed: dict[str, str] = {}
    for fits in (same_steps, same_name, same_inputs):
        pairs = [
            (a, b)
            for a in old
            for b in new
            if b != a and not keeps_name(a) and not keeps_name(b)
            if is_compatible(a, b) and fits(a, b)
        ]
        for a, b in sorted(pairs, key=_measure_name_distance):  # equal ones stay in their order
            if a not in renamed and b not in renamed.values():
                renamed[a] = b
    return renamed


def _measure_name_distance(pair: tuple[str, str]) -> float:
    """Return from 0 to 1 how far apart two names are; 0 for names that were both generated."""
    if all(map(is_generated_name, pair)):
        return 0.0
    return 1.0 - SequenceMatcher(None, *pair).ratio()
