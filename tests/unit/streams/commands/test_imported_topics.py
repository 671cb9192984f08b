"""Test which names that Java has generated are offered for the joins of an application."""

from __future__ import annotations

from typing import Any

import pytest

from streams import App, serdes
from streams.commands.imported_topics import advise_internal_names

TEXT: Any = {"key": serdes.string, "value": serdes.string}
SHARED = "a-KSTREAM-OUTERSHARED-{:010}-store-changelog"


def advise_for_joins(count: int, topics: list[str]) -> str:
    app = App("a")
    left, right = app.stream("left", **TEXT), app.stream("right", **TEXT)
    for number in range(count):
        left.left_join(right, lambda a, b: a, within=10, name=f"j{number}")
    return advise_internal_names(app.topology(), ["left", "right", *topics])


def test_the_one_name_of_a_kind_belongs_to_the_one_that_is_missing() -> None:
    advice = advise_for_joins(1, [SHARED.format(4), "a-other-changelog"])
    name = SHARED.format(4).removeprefix("a-").removesuffix("-changelog")
    assert advice.endswith(f": internal_names={ {'j0-left-shared-join-store': name} }")


@pytest.mark.parametrize(("joins", "numbers"), [(2, (4, 9)), (1, (4, 9)), (0, (4,))])
def test_names_that_may_belong_to_several_joins_are_not_assigned(
    joins: int, numbers: tuple[int, ...]
) -> None:
    advice = advise_for_joins(joins, [SHARED.format(each) for each in numbers])
    assert "internal_names={" not in advice
    assert advice.count("KSTREAM-OUTERSHARED-") == len(numbers)


def test_nothing_is_advised_where_java_has_generated_no_name() -> None:
    assert advise_for_joins(1, ["a-counts-changelog", "b" + SHARED.format(4)]) == ""
