"""Test that each class and method of Kafka Streams is on its page, with what there is instead."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.porting.api.counterparts import COUNTERPARTS
from tests.porting.api.java_api import load_kept_api
from tests.porting.api.page import PAGE, Undecided, find_counterpart, list_rows, render_page


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
