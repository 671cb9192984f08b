"""Test the coverage of a reconciliation: how much was checked, and what may go unchecked."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from streams import App, Store, serdes, until_time_limit
from streams.errors import ConfigError
from streams.spark.reconciliation.accounts import AccountKind, RefusedCheck
from streams.spark.reconciliation.coverage import (
    Coverage,
    check_allowed_names,
    create_account_key,
    measure_coverage,
)
from streams.spark.reconciliation.targets import list_opaque_accounts, reconcilable_targets


@dataclass(frozen=True)
class Asked:
    name: str
    kind: AccountKind


COUNTS, OUT, SAME = (
    Asked("counts", AccountKind.STORE),
    Asked("out", AccountKind.STREAM),
    Asked("counts", AccountKind.UPSERTS),
)
ASKED = {create_account_key(each): each for each in (COUNTS, OUT, SAME)}


def coverage(checked: list[Asked], *allowed: str, total: int = 3) -> Coverage:
    return measure_coverage(
        ASKED,
        {create_account_key(each) for each in checked},
        [RefusedCheck(each.name, 0, "a join") for each in (COUNTS, OUT)],
        allowed_names=allowed,
        record_counts={create_account_key(COUNTS): 6_666, create_account_key(OUT): 3_334},
        account_count=total,
    )


def test_accounts_and_records_are_told_in_numbers_and_percent() -> None:
    found = coverage([COUNTS])
    assert (found.accounts_checked, found.accounts_asked) == (1, 3)
    assert (found.records_checked, found.records_asked) == (6_666, 10_000)
    assert (found.accounts_percent, found.records_percent) == (33.3, 66.6)
    assert str(found) == (
        "Checked 1 of 3 accounts (33.3 %) with 6,666 of 10,000 records by their offsets (66.6 %)"
    )
    assert "; 4 more accounts of the application were not asked for" in str(
        coverage([COUNTS], total=7)
    )


def test_a_hundred_percent_is_all_and_nothing_less() -> None:
    nearly = Coverage(
        accounts_checked=9_999,
        accounts_asked=10_000,
        accounts_total=10_000,
        records_checked=10**9 - 1,
        records_asked=10**9,
    )
    assert (nearly.accounts_percent, nearly.records_percent) == (99.9, 99.9)
    assert coverage([COUNTS, OUT, SAME]).accounts_percent == 100
    empty = Coverage(
        accounts_checked=1, accounts_asked=1, accounts_total=1, records_checked=0, records_asked=0
    )
    assert empty.records_percent == 100


def test_a_store_and_a_topic_of_one_name_are_two_accounts() -> None:
    found = coverage([COUNTS])
    missed = [(each.name, each.kind, each.record_count) for each in found.unchecked]
    assert missed == [("out", AccountKind.STREAM, 3_334), ("counts", AccountKind.UPSERTS, None)]


def test_what_goes_unchecked_is_allowed_by_its_name_or_refused() -> None:
    found = coverage([COUNTS], "out")
    assert (found.allowed, found.refused) == (("out",), ("counts",))
    assert [(each.name, each.is_allowed) for each in found.unchecked] == [
        ("out", True),
        ("counts", False),
    ]
    assert coverage([COUNTS], "out", "counts").refused == ()


@pytest.mark.parametrize(
    ("name", "nearest"), [("counst", "counts"), ("Out", "out"), ("cont", "counts")]
)
def test_an_unknown_name_is_refused_with_the_nearest_one(name: str, nearest: str) -> None:
    with pytest.raises(
        ConfigError, match=f"'{name}'.* no such account: the nearest is '{nearest}'"
    ):
        check_allowed_names([name], [OUT, COUNTS])
    check_allowed_names(["out", "counts"], [OUT, COUNTS])
    with pytest.raises(ConfigError, match="it has none"):
        check_allowed_names([name], [])


def test_every_store_and_topic_and_a_step_that_chooses_topics_is_an_account() -> None:
    app = App("every")
    group = app.stream("in", key=serdes.string, value=serdes.int64).group_by_key()
    group.count(store=Store.in_memory("scratch", logged=False))
    counts = group.count(store="counts")
    counts.suppress(until_time_limit(1_000), name="held").to_stream().to("out")
    counts.to_stream().to(lambda record: str(record.key), name="routed")
    topology = app.topology()
    stores = {spec.name for sub in topology.subtopologies for spec in sub.stores}
    opaque = {(each.name, each.kind) for each in list_opaque_accounts(topology)}
    there = {(each.name, each.kind) for each in reconcilable_targets(topology)}
    assert opaque & there == set()
    assert {name for name, kind in opaque | there if kind is AccountKind.STORE} == stores
    assert ("scratch", AccountKind.STORE) in opaque
    assert {name for name, kind in opaque | there if kind is not AccountKind.STORE} == {
        "out",
        "routed",
    }
