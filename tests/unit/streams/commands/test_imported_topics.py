"""Test which names that Java has generated are offered for the joins of an application."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streams import App, serdes
from streams.commands.imported_topics import advise_internal_names

TEXT: Any = {"key": serdes.string, "value": serdes.string}
SHARED = "a-KSTREAM-OUTERSHARED-{:010}-store-changelog"


STREAM_JOIN = ("a-KSTREAM-JOINTHIS-{0}-store-changelog", "a-KSTREAM-JOINOTHER-{0}-store-changelog")
NAMED_STREAM_JOIN = ("a-{0}-this-join-store-changelog", "a-{0}-other-join-store-changelog")
FOREIGN_KEY_JOIN = (
    "a-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-{0}-topic",
    "a-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-{0}-topic",
    "a-KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-{0}-changelog",
)
NAMED_FOREIGN_KEY_JOIN = (
    "a-{0}-subscription-registration-topic",
    "a-{0}-subscription-response-topic",
    "a-{0}-subscription-store-changelog",
)


def advise_for_joins(count: int, topics: list[str]) -> str:
    app = App("a")
    left, right = app.stream("left", **TEXT), app.stream("right", **TEXT)
    for number in range(count):
        left.left_join(right, lambda a, b: a, within=10, name=f"j{number}")
    return advise_internal_names(app.topology(), ["left", "right", *topics])


def test_the_one_name_of_a_kind_belongs_to_the_one_that_is_missing() -> None:
    advice = advise_for_joins(1, [SHARED.format(4), "a-other-changelog"])
    name = SHARED.format(4).removeprefix("a-").removesuffix("-changelog")
    assert advice.endswith(
        f": if these are the same joins, internal_names={ {'j0-left-shared-join-store': name} }"
    )


@pytest.mark.parametrize(("joins", "numbers"), [(2, (4, 9)), (1, (4, 9)), (0, (4,))])
def test_names_that_may_belong_to_several_joins_are_not_assigned(
    joins: int, numbers: tuple[int, ...]
) -> None:
    advice = advise_for_joins(joins, [SHARED.format(each) for each in numbers])
    assert "internal_names={" not in advice
    assert advice.count("KSTREAM-OUTERSHARED-") == len(numbers)


def join_streams(app: App, names: list[str | None]) -> None:
    left, right = app.stream("left", **TEXT), app.stream("right", **TEXT)
    for name in names:
        left.join(right, lambda a, b: a, within=10, name=name)


def join_by_foreign_key(app: App, names: list[str | None]) -> None:
    left = app.table("left", **TEXT, store="left-store")
    right = app.table("right", **TEXT, store="right-store")
    for name in names:
        left.join(right, lambda a, b: a, foreign_key=lambda k, v: v, name=name)


JOINS_OF_BOTH_KINDS = pytest.mark.parametrize(
    ("join", "generated", "named"),
    [
        (join_streams, STREAM_JOIN, NAMED_STREAM_JOIN),
        (join_by_foreign_key, FOREIGN_KEY_JOIN, NAMED_FOREIGN_KEY_JOIN),
    ],
)


def advise_for(
    join: Callable[[App, list[str | None]], None], names: list[str | None], topics: list[str]
) -> str:
    app = App("a")
    join(app, names)
    return advise_internal_names(app.topology(), ["left", "right", *topics])


@JOINS_OF_BOTH_KINDS
def test_a_pair_is_offered_for_the_only_join_that_differs(
    join: Callable[[App, list[str | None]], None],
    generated: tuple[str, ...],
    named: tuple[str, ...],
) -> None:
    topics = [each.format("0000000104") for each in generated]
    alone = advise_for(join, ["b"], topics)
    beside_same = advise_for(join, ["b", "same"], topics + [each.format("same") for each in named])
    assert alone.count("'b-") == beside_same.count("'b-") == len(generated)


@JOINS_OF_BOTH_KINDS
@pytest.mark.parametrize(
    ("names", "in_java"),
    [
        ([None, "b"], []),  # the join of Java may be the one without a name
        (["b"], ["second"]),  # b may be the second
        ([None, "b"], ["second"]),
    ],
)
def test_no_pair_is_offered_beside_another_join_that_differs(
    join: Callable[[App, list[str | None]], None],
    generated: tuple[str, ...],
    named: tuple[str, ...],
    names: list[str | None],
    in_java: list[str],
) -> None:
    topics = [each.format("0000000104") for each in generated]
    topics += [topic.format(name) for name in in_java for topic in named]
    advice = advise_for(join, names, topics)
    assert "internal_names={" not in advice
    assert advice.count("0000000104") == len(generated)


def test_nothing_is_advised_where_java_has_generated_no_name() -> None:
    assert advise_for_joins(1, ["a-counts-changelog", "b" + SHARED.format(4)]) == ""
