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


def test_the_topics_of_a_rekeyed_join_that_gets_a_name_are_kept_by_a_repartition_before_it() -> (
    None
):
    def join(topic_names: tuple[str, ...], store_names: Arguments, name: str | None) -> UpgradePlan:
        app = App("a", internal_names=store_names)
        streams = [rekeyed(app, "one"), rekeyed(app, "other")]
        if topic_names:
            pairs = zip(streams, topic_names, strict=True)
            streams = [each.repartition(name=name) for each, name in pairs]
        one, other = streams
        one.left_join(other, lambda a, b: a, within=SECOND, value=serdes.string, name=name)
        return compare_topologies(old, describe_topology(app.topology()))

    old_app = App("a")
    one, other = rekeyed(old_app, "one"), rekeyed(old_app, "other")
    one.left_join(other, lambda a, b: a, within=SECOND, value=serdes.string)
    old = describe_topology(old_app.topology())
    stores = [store.name for sub in old.subtopologies for store in sub.stores]
    store_names = {
        f"n-{ending}": name for name in stores for word, ending in ENDINGS.items() if word in name
    }
    plan = join((), store_names, "n")
    assert plan.loses_state
    remedies = "\n".join(each.remedy for change in plan.changes for each in change.effects)
    told = sorted(set(re.findall(r"call repartition\(name='([^']+)'\) before it", remedies)))
    assert len(told) == 2
    assert not join(tuple(told), store_names, "n").loses_state


def test_a_given_name_of_a_foreign_key_joins_store_is_kept_by_the_setting_that_gave_it() -> None:
    old_app = App("a", internal_names={"n-subscription-store": "subscribed"})
    old = add(old_app, join_by_foreign_key, name="n", store="rows")
    plan = compare_topologies(old, add(App("a"), join_by_foreign_key, name="n", store="rows"))
    remedies = [each.remedy for change in plan.changes for each in change.effects]
    advice = "to keep what there is, say internal_names={new name: 'subscribed'} in App(...)"
    assert advice in remedies


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_store_of_a_table_that_a_foreign_key_join_reads_is_named_by_the_table(
    side: str,
) -> None:
    def join(**stores: str) -> TopologyDescription:
        app = App("a")
        left, right = (
            app.table(each, store=stores.get(each, each), **TEXT) for each in ("left", "right")
        )
        left.join(
            right, max, foreign_key=lambda k, v: v, value=serdes.string, name="n", store="rows"
        )
        return describe_topology(app.topology())

    plan = compare_topologies(join(), join(**{side: "other"}))
    remedies = [each.remedy for change in plan.changes for each in change.effects]
    assert f"to keep what there is, say store={side!r}" in remedies
