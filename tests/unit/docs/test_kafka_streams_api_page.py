"""Test that each class and method of Kafka Streams is on its page, with what there is instead."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.porting.api.counterparts import COUNTERPARTS, Counterpart
from tests.porting.api.java_api import load_kept_api
from tests.porting.api.page import (
    PAGE,
    Undecided,
    find_counterpart,
    list_rows,
    render_page,
    spell_in_python,
)

OF_THE_SAME_NAME = {
    "KafkaStreams.query",  # takes a request, where here it takes the name of a store
    # The overloads whose mapper takes the key, too, are other steps here.
    "kstream.KStream.flatMapValues",
    "kstream.KStream.mapValues",
    "kstream.KTable.mapValues",
    # The class here is Java's ValueTransformerWithKey.
    "kstream.Transformer: ValueTransformer",
    "kstream.ValueTransformer: ValueTransformer",
}
"""What does something else than what has the same name here."""


def test_the_page_is_what_the_program_writes() -> None:
    """Test that the page is up to date; `python -m tests.porting.api --keep-list` writes it."""
    assert PAGE.read_text() == render_page(load_kept_api())


def test_a_class_or_a_method_that_is_new_is_found() -> None:
    with pytest.raises(Undecided, match=r"KafkaStreams\.fly has no counterpart"):
        render_page({"KafkaStreams": ["fly"]})
    with pytest.raises(Undecided, match=r"kstream\.Novelty has no entry"):
        render_page({"kstream.Novelty": []})


def test_no_entry_is_for_what_kafka_streams_has_not() -> None:
    api = load_kept_api()
    used = {find_counterpart(each)[0] for each in api}
    assert COUNTERPARTS.keys() - used == set()
    for key, counterpart in COUNTERPARTS.items():
        methods = {m for each in api if find_counterpart(each)[0] == key for m in api[each]}
        assert counterpart.methods.keys() - methods == set(), key


def test_every_state_has_rows() -> None:
    rows = [row for each, methods in load_kept_api().items() for row in list_rows(each, methods)]
    assert set(Counter(row.state for row in rows)) == {"same", "other way", "not there"}
    assert all(row.python for row in rows)


def list_overlooked(key: str, counterpart: Counterpart, methods: list[str]) -> list[str]:
    """Return the methods that are said to be elsewhere or not there, and are on the class here.

    For a class that is not there this is a class here that has all of its methods; a single one,
    such as `get`, shows nothing.
    """
    if not counterpart.python:
        names = {spell_in_python(each) for each in methods}
        known = {each for other in COUNTERPARTS.values() for each in other.python}
        found = [each for each in known if len(names) > 1 and names <= set(dir(each))]
        return [f"{key}: {each.__name__}" for each in found if counterpart.state == "not there"]
    told = {method for method, (state, _) in counterpart.methods.items() if state != "same"}
    return [
        f"{key}.{method}"
        for method in sorted(told)
        for each in counterpart.python
        if hasattr(each, spell_in_python(method))
    ]


def test_nothing_that_is_there_is_said_to_be_elsewhere_or_missing() -> None:
    found = {
        name
        for each, methods in load_kept_api().items()
        for name in list_overlooked(*(each, find_counterpart(each)[1]), methods)
    }
    assert found == OF_THE_SAME_NAME


def test_an_entry_that_overlooks_a_method_is_found() -> None:
    missing = Counterpart("not there", "no")
    listening = ["onUpdateStart", "onUpdateSuspended"]
    assert list_overlooked("A", missing, listening) == ["A: RestoreListener"]
    assert list_overlooked("A", missing, [*listening, "fly"]) == []
    (driver,) = COUNTERPARTS["TopologyTestDriver"].python
    told = Counterpart("same", "it", (driver,), {"close": ("not there", "no")})
    assert list_overlooked("B", told, ["close"]) == ["B.close"]
