"""Test that a deleted topic is called what it is, and that only outputs are to be created again."""

from __future__ import annotations

import pytest

from streams import App, serdes
from streams.commands.internal_topics import select_topics_named_like_internal
from streams.runtime.assigning.internal_topics import list_internal_topics
from streams.runtime.clients.missing_topics import InternalKind, explain_missing_topics

CHANGELOG, REPARTITION, LEDGER = "a-c-changelog", "a-c-repartition", "a-ledger"
INTERNAL = {
    CHANGELOG: InternalKind.CHANGELOG,
    REPARTITION: InternalKind.REPARTITION,
    LEDGER: InternalKind.LEDGER,
}


def test_the_internal_topics_of_an_application_are_known_by_what_they_are() -> None:
    app = App("a", ledger=True)
    stream = app.stream("lines", key=serdes.string, value=serdes.string)
    counts = stream.group_by(lambda key, value: value, key=serdes.string).count(store="c")
    counts.to_stream().map_values(str, value=serdes.string).to("a-out-changelog")
    assert list_internal_topics(app.topology(), has_ledger=True) == INTERNAL


@pytest.mark.parametrize(
    ("topic", "called", "remedy"),
    [
        (CHANGELOG, "changelog", "start over with `millrace group reset"),
        (REPARTITION, "repartition topic", "start them again. They create it as it has to be"),
        (LEDGER, "ledger", "start them again, and they create it as it has to be"),
    ],
)
def test_an_internal_topic_is_called_what_it_is_and_not_to_be_created_by_hand(
    topic: str, called: str, remedy: str
) -> None:
    text = explain_missing_topics([topic], INTERNAL)
    assert text.startswith(f"{called} {topic!r} is not on the brokers: it was deleted, ")
    assert "Don't create it by hand" in text
    assert remedy in text
    assert "create-topics" not in text


def test_an_output_is_to_be_created_again_whatever_its_name_is() -> None:
    text = explain_missing_topics(["a-out-changelog"], INTERNAL)
    assert text.startswith("output 'a-out-changelog' is not on the brokers: it was deleted, and")
    assert "`millrace create-topics a-out-changelog" in text


def test_topics_of_several_kinds_are_told_apart() -> None:
    text = explain_missing_topics(["out", CHANGELOG], INTERNAL)
    assert "changelog 'a-c-changelog' is not on" in text
    assert "output 'out' is not on" in text


def test_names_of_internal_topics_are_found_by_their_ends() -> None:
    names = [CHANGELOG, REPARTITION, "changelog-of-house", "in"]
    assert select_topics_named_like_internal(names) == [CHANGELOG, REPARTITION]
