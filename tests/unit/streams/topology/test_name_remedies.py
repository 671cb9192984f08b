"""Test that the advice of `millrace plan` keeps what there is, for each kind of step with state."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from streams import App, Processor, Store, serdes, until_window_closes, windows
from streams.topology.compare_versions import UpgradePlan, compare_topologies
from streams.topology.description import TopologyDescription, describe_topology
from streams.topology.state_effects import StateOutcome

Arguments = dict[str, str]
TEXT: dict[str, Any] = {"key": serdes.string, "value": serdes.string}
NUMBER: dict[str, Any] = {"key": serdes.string, "value": serdes.int64}
SECOND = timedelta(seconds=1)


class Using(Processor):
    """Declares the stores that it is given, and does nothing with them."""


def rekeyed(app: App, topic: str = "lines") -> Any:
    return app.stream(topic, **TEXT).select_key(lambda k, v: v, key=serdes.string)


def add(app: App, build: Callable[..., Any], **given: Any) -> TopologyDescription:
    build(app, given)
    return describe_topology(app.topology())


def join_by_foreign_key(app: App, given: Any) -> None:
    left, right = app.table("left", store="left", **TEXT), app.table("right", store="right", **TEXT)
    left.join(right, max, foreign_key=lambda k, v: v, value=serdes.string, **given)


def suppress(app: App, given: Any) -> None:
    grouped = app.stream("lines", **TEXT).group_by_key().windowed_by(windows.tumbling(SECOND))
    grouped.count(store="counts").suppress(until_window_closes(), **given)


def join_streams(app: App, given: Any) -> None:
    one, other = app.stream("one", **TEXT), app.stream("other", **TEXT)
    one.left_join(other, lambda a, b: a, within=SECOND, value=serdes.string, **given)


def join_rekeyed_streams(app: App, given: Any) -> None:
    one, other = rekeyed(app, "one"), rekeyed(app, "other")
    one.outer_join(other, lambda a, b: a, within=SECOND, value=serdes.string, **given)


def join_with_grace(app: App, given: Any) -> None:
    table = app.table("rows", store=Store.versioned("rows", history=SECOND), **TEXT)
    stream = app.stream("lines", **TEXT)
    stream.join(table, lambda a, b: a, grace=SECOND, value=serdes.string, **given)


def join_rekeyed_with_table(app: App, given: Any) -> None:
    table = app.table("rows", store="rows", **TEXT)
    rekeyed(app).join(table, lambda a, b: a, value=serdes.string, **given)


def count(app: App, given: Any) -> None:
    app.stream("lines", **TEXT).group_by_key().count(**given)


def count_by_another_key(app: App, given: Any) -> None:
    rekeyed(app).group_by_key().count(**given)


def group(app: App, given: Any) -> None:
    app.stream("lines", **TEXT).group_by(lambda k, v: v, key=serdes.string, **given).count(
        store="counts"
    )


def count_windows(app: App, given: Any) -> None:
    app.stream("lines", **TEXT).group_by_key().windowed_by(windows.session(SECOND)).count(**given)


def repartition(app: App, given: Any) -> None:
    app.stream("lines", **TEXT).repartition(**given).group_by_key().count(store="counts")


def read_table(app: App, given: Any) -> None:
    app.table("rows", **NUMBER, **given).group_by(
        lambda k, v: (k, v), key=serdes.string, value=serdes.int64
    ).count(store="counts")


def keep_as_table(app: App, given: Any) -> None:
    rekeyed(app).to_table(**given)


def process(app: App, given: Any) -> None:
    store = Store.persistent(given["store"], **TEXT)
    app.stream("lines", **TEXT).process(Using, stores=[store])


CASES: list[tuple[Callable[..., Any], tuple[str, ...]]] = [
    (join_by_foreign_key, ("name",)),
    (join_by_foreign_key, ("name", "store")),
    (join_by_foreign_key, ("store",)),
    (suppress, ("name",)),
    (join_streams, ("name",)),
    (join_streams, ("store", "other_store")),
    (join_streams, ("name", "store", "other_store")),
    (join_rekeyed_streams, ("name",)),
    (join_with_grace, ("name",)),
    (join_rekeyed_with_table, ("name",)),
    (count, ("store",)),
    (count_by_another_key, ("store",)),
    (group, ("name",)),
    (count_windows, ("store",)),
    (repartition, ("name",)),
    (read_table, ("store",)),
    (keep_as_table, ("store",)),
    (process, ("store",)),
]


def read_advice(plan: UpgradePlan) -> Arguments:
    """Return the arguments that the remedies of what is lost name."""
    found: Arguments = {}
    for change in plan.changes:
        for effect in change.effects:
            if effect.outcome is StateOutcome.LOST:
                advice = effect.remedy.replace("its Store '", "store='")
                for argument, value in re.findall(r"\b(\w+)='([^'.]+)'", advice):
                    assert found.setdefault(argument, value) == value, "one name for one argument"
    return found


@pytest.mark.parametrize(
    ("build", "arguments"), CASES, ids=[f"{b.__name__}-{'-'.join(a)}" for b, a in CASES]
)
def test_a_renamed_step_keeps_what_it_had_if_the_advice_is_followed(
    build: Callable[..., Any], arguments: tuple[str, ...]
) -> None:
    before = {argument: f"former-{argument}" for argument in arguments}
    renamed = {argument: f"other-{argument}" for argument in arguments}
    old, new = add(App("a"), build, **before), add(App("a"), build, **renamed)
    plan = compare_topologies(old, new)
    assert plan.loses_state
    advised = {**renamed, **read_advice(plan)}
    assert not compare_topologies(old, add(App("a"), build, **advised)).loses_state


@pytest.mark.parametrize("build", [count, count_by_another_key, count_windows])
def test_a_generated_name_that_shifts_is_kept_if_the_advice_is_followed(
    build: Callable[..., Any],
) -> None:
    def add_below_another_step(**given: Any) -> TopologyDescription:
        app = App("a")
        app.stream("first", **TEXT).to("elsewhere")
        return add(app, build, **given)

    old = add(App("a"), build)
    plan = compare_topologies(old, add_below_another_step())
    assert plan.loses_state
    advice = read_advice(plan)
    assert not compare_topologies(old, add_below_another_step(**advice)).loses_state


@pytest.mark.parametrize("build", [join_by_foreign_key, suppress, join_streams, repartition])
def test_a_step_that_is_added_below_shifts_no_generated_name(build: Callable[..., Any]) -> None:
    def build_above_another_step(app: App, given: Any) -> None:
        build(app, given)
        app.stream("first", **TEXT).to("elsewhere")

    old, new = add(App("a"), build), add(App("a"), build_above_another_step)
    assert not compare_topologies(old, new).loses_state


ENDINGS = {
    "THIS": "this-join-store",
    "OTHER": "outer-other-join-store",
    "OUTERSHARED": "left-shared-join-store",
    "REGISTRATION": "subscription-registration-topic",
    "RESPONSE": "subscription-response-topic",
    "STATE-STORE": "subscription-store",
}
"""The ends of the names of a join by a word of the generated names."""


@pytest.mark.parametrize("build", [join_by_foreign_key, join_streams])
def test_a_join_that_gets_a_name_keeps_what_it_had_if_the_advice_is_followed(
    build: Callable[..., Any],
) -> None:
    given = {"store": "rows"} if build is join_by_foreign_key else {}

    def add_below_another_step(names: Arguments) -> TopologyDescription:
        app = App("a", internal_names=names)
        app.stream("first", **TEXT).to("elsewhere")
        return add(app, build, name="n", **given)

    old = add(App("a"), build, **given)
    plan = compare_topologies(old, add_below_another_step({}))
    assert plan.loses_state
    remedies = [each.remedy for change in plan.changes for each in change.effects]
    told = re.findall(r"internal_names=\{new name: '([^']+)'\}", "\n".join(remedies))
    names = {
        f"n-{ending}": name for name in told for word, ending in ENDINGS.items() if word in name
    }
    assert names
    assert not compare_topologies(old, add_below_another_step(names)).loses_state
