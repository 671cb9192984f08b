"""Look for a planted bug in the histories of many seeds, first in the one that showed it before.

Which seed shows a bug changes with the code, so that any may; a search from the first one on may
take a minute. `planted_seeds.json` has the seed of each bug that the first histories do not show;
it is a hint and no verdict: where it is out of date, all seeds are tried.
`pytest tests/simulation -k 'bug or found' --keep-seeds` writes it anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

KEPT = Path(__file__).with_suffix(".json")
SOON = 2
"""A bug that a seed below this one shows is not kept: a search finds it at once."""


class PlantedSeeds:
    """Knows the seeds whose histories showed the planted bugs, by the names of their tests."""

    def __init__(self, kept: Mapping[str, int], keeps: bool = False) -> None:
        self.found = dict(kept)
        self.keeps = keeps

    def find(self, name: str, count: int, shows: Callable[[int], bool]) -> int | None:
        """Return a seed below `count` whose history shows the bug of that name; None if none does.

        `shows` runs the history of a seed.
        """
        hint = None if self.keeps else self.found.get(name)
        first = [] if hint is None or hint >= count else [hint]
        for seed in (*first, *(seed for seed in range(count) if seed not in first)):
            if shows(seed):
                if self.keeps:
                    self._keep(name, seed)
                return seed
        return None

    def _keep(self, name: str, seed: int) -> None:
        self.found.pop(name, None)
        if seed >= SOON:
            self.found[name] = seed


def read_seeds(keeps: bool) -> PlantedSeeds:
    """Return the seeds that are kept."""
    return PlantedSeeds(json.loads(KEPT.read_text()), keeps)


def write_seeds(seeds: PlantedSeeds) -> None:
    """Write the seeds that a run has found, and those of tests that it has not run."""
    KEPT.write_text(json.dumps(seeds.found, indent=1, sort_keys=True) + "\n")
