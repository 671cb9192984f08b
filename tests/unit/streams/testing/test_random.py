"""Test that every word is counted once, whatever happens and wherever the process dies."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Literal

import pytest

from streams import TopologyTestDriver
from streams.runtime.threads.commit import CommitStep
from tests.unit.streams.testing.apps import build_word_count_app

STEPS = [step for step in CommitStep if step is not CommitStep.STORING]


@pytest.mark.parametrize("seed", range(8))
def test_counts_go_up_by_one_and_end_at_the_number_of_words(seed: int) -> None:
    random = Random(seed)
    stores: Literal["declared", "memory"] = "memory" if seed % 2 else "declared"
    piped: Counter[str] = Counter()
    app = build_word_count_app(
        processing_guarantee=["exactly_once_v2", "exactly_once"][seed // 2 % 2]
    )
    with TopologyTestDriver(app, partitions={"lines": 2}, seed=seed, stores=stores) as driver:
        for number in range(30):
            match random.randrange(5):
                case 0 if driver.is_running:
                    driver.crash(at=random.choice(STEPS), times=random.randint(1, 4))
                case 1 if driver.is_running:
                    driver.crash()
                case 2 if not driver.is_running:
                    driver.restart()
                case _:
                    words = random.choices("abcd", k=random.randint(0, 3))
                    piped.update(words)
                    driver.topic("lines").pipe(f"k{number}", " ".join(words))
        for _ in range(10):  # An armed fault may still strike.
            if not driver.is_running:
                driver.restart()
        driver.topic("lines").pipe("last", "z")
        if not driver.is_running:
            driver.restart()
        piped.update("z")
        counts: dict[str, list[int]] = {}
        for word, count in driver.topic("counts-by-word").read_pairs():
            counts.setdefault(word, []).append(count)
        assert counts == {word: list(range(1, n + 1)) for word, n in piped.items()}, f"{seed=}"
        assert dict(driver.store("counts").all()) == dict(piped), f"{seed=}"
