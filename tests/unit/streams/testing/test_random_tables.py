"""Test that groups and joins agree with the rows, whatever happens and wherever it dies."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from streams import App, Store, TopologyTestDriver, serdes
from streams.runtime.threads.commit import CommitStep

TEXT: Any = {"key": serdes.string, "value": serdes.string}


def build_accounts_app(*, caching: bool, optimized: bool) -> App:
    """Build an application of accounts with owners and balances.

    It sums the balances by owner and joins the accounts with their notes.
    """
    app = App("random-tables", topology_optimization="all" if optimized else "none")

    def kept(name: str) -> Store:
        return Store.persistent(name, caching=caching)

    accounts = app.table("accounts", **TEXT, store=kept("accounts"))
    by_owner = accounts.group_by(
        lambda account, row: (row.split(":")[0], int(row.split(":")[1])),
        key=serdes.string,
        value=serdes.int64,
    )
    by_owner.count(store=kept("counts"))
    by_owner.aggregate(
        lambda: 0,
        lambda owner, balance, total: total + balance,
        lambda owner, balance, total: total - balance,
        value=serdes.int64,
        store=kept("sums"),
    )
    notes = app.table("notes", **TEXT, store=kept("notes"))
    accounts.outer_join(
        notes, lambda row, note: f"{row}/{note}", value=serdes.string, store=kept("joined")
    )
    return app


@pytest.mark.parametrize("seed", range(8))
def test_sums_counts_and_joins_are_those_of_the_rows_at_the_end(seed: int) -> None:
    random = Random(seed)
    app = build_accounts_app(caching=bool(seed % 2), optimized=bool(seed // 2 % 2))
    rows: dict[str, dict[str, str]] = {"accounts": {}, "notes": {}}
    steps = [step for step in CommitStep if step is not CommitStep.STORING]
    partitions = {"accounts": 3, "notes": 3}
    with TopologyTestDriver(app, partitions=partitions, seed=seed, stores="memory") as driver:
        for _ in range(60):
            match random.randrange(9):
                case 0 if driver.is_running:
                    driver.crash(at=random.choice(steps), times=random.randint(1, 4))
                case 1 if driver.is_running:
                    driver.crash()
                case 2 | 3 if not driver.is_running:
                    driver.restart()
                case _:
                    topic, key = random.choice(["accounts", "notes"]), random.choice("abcde")
                    row: str | None = None
                    if random.random() < 0.8:
                        row = f"{random.choice(['ann', 'bob', 'cy'])}:{random.randrange(100)}"
                    driver.topic(topic).pipe(key, row)
                    rows[topic].pop(key, None)
                    if row is not None:
                        rows[topic][key] = row
        for _ in range(10):  # An armed fault may still strike.
            if not driver.is_running:
                driver.restart()
            driver.topic("notes").pipe("z", None)
        counts: Counter[str] = Counter()
        sums: Counter[str] = Counter()
        for row in rows["accounts"].values():
            owner, balance = row.split(":")
            counts[owner] += 1
            sums[owner] += int(balance)
        for name, expected in (("counts", counts), ("sums", sums)):
            found = {owner: value for owner, value in driver.store(name).all() if value}
            assert found == {k: v for k, v in expected.items() if v}, f"{seed=} {name}"
        assert dict(driver.store("joined").all()) == {
            key: f"{rows['accounts'].get(key)}/{rows['notes'].get(key)}"
            for key in rows["accounts"].keys() | rows["notes"].keys()
        }, f"{seed=}"
