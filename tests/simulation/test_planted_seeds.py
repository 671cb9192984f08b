"""Test that a kept seed shortens the search for a planted bug, and decides nothing."""

from __future__ import annotations

from tests.simulation.planted_seeds import SOON, PlantedSeeds


def test_the_kept_seed_is_tried_first() -> None:
    tried: list[int] = []

    def shows(seed: int) -> bool:
        tried.append(seed)
        return True

    assert PlantedSeeds({"bug": 7}).find("bug", 10, shows) == 7
    assert tried == [7]


def test_a_kept_seed_that_shows_the_bug_no_more_is_followed_by_all_others() -> None:
    tried: list[int] = []

    def shows(seed: int) -> bool:
        tried.append(seed)
        return seed == 4

    assert PlantedSeeds({"bug": 2}).find("bug", 5, shows) == 4
    assert tried == [2, 0, 1, 3, 4]


def test_a_bug_that_no_seed_shows_is_not_found() -> None:
    assert PlantedSeeds({"bug": 2, "other": 9}).find("bug", 3, lambda seed: False) is None
    assert PlantedSeeds({"bug": 9}).find("bug", 3, lambda seed: seed == 9) is None


def test_a_run_that_keeps_seeds_searches_from_the_first_and_keeps_no_early_one() -> None:
    seeds = PlantedSeeds({"late": 9, "early": 5, "other": 3}, keeps=True)
    assert seeds.find("late", 10, lambda seed: seed >= SOON) == SOON
    assert seeds.find("early", 10, lambda seed: True) == 0
    assert seeds.found == {"late": SOON, "other": 3}
