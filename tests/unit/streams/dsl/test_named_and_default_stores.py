"""Test stores whose medium or name is left to the application, and names that must be given."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from streams import App, Store, TopologyTestDriver, serdes, until_time_limit, windows
from streams.errors import ConfigError, TopologyError
from streams.graph.nodes import StoreSpec

TEXT: Any = {"key": serdes.string, "value": serdes.string}
MINUTE = timedelta(minutes=1)


def specs(app: App) -> dict[str, StoreSpec]:
    topology = app.topology()
    found = {spec.name: spec for sub in topology.subtopologies for spec in sub.stores}
    return found | {table.store.name: table.store for table in topology.global_tables}


def build_all_kinds(**settings: Any) -> App:
    """Build an application with all stores that a step of the DSL may make, named or not."""
    app = App("kinds", **settings)
    lines, others = app.stream("lines", **TEXT), app.stream("others", **TEXT)
    lines.group_by_key().count(store="counts")
    lines.group_by_key().windowed_by(windows.tumbling(MINUTE)).count(store="windows")
    lines.group_by_key().windowed_by(windows.session(MINUTE)).count(store="sessions")
    lines.outer_join(others, lambda a, b: f"{a}{b}", within=MINUTE, name="joined")
    rows, more = app.table("rows", **TEXT, store="rows"), app.table("more", **TEXT, store="more")
    rows.join(
        more, lambda a, b: a, foreign_key=lambda k, v: v, name="fk", store="fk", value=serdes.string
    )
    app.global_table("global", **TEXT, store="global")
    lines.group_by_key().count(store=Store.persistent("on-disk"))
    lines.group_by_key().count(store=Store.in_memory("in-memory"))
    return app


def test_stores_are_on_disk_unless_the_application_says_otherwise() -> None:
    found = specs(build_all_kinds())
    assert [name for name, spec in found.items() if not spec.persistent] == ["in-memory"]
    found = specs(build_all_kinds(default_store="in_memory"))
    assert [name for name, spec in found.items() if spec.persistent] == ["on-disk"]
    assert len(found) > 9
    with pytest.raises(ConfigError, match="default_store"):
        App("a", default_store="heap")  # type: ignore[arg-type]


def test_default_stores_in_memory_are_restored_after_a_crash() -> None:
    with TopologyTestDriver(build_all_kinds(default_store="in_memory")) as driver:
        driver.topic("lines").pipe_many([("a", "1"), ("a", "2")])
        driver.crash()
        driver.restart()
        assert driver.store("counts").get("a") == 2


def test_a_step_without_a_named_store_may_have_no_changelog_and_no_cache() -> None:
    app = App("a")
    counts = app.stream("in", **TEXT).group_by_key()
    counts.count(store=Store.default(caching=False, logged=False), name="tally")
    counts.windowed_by(windows.tumbling(MINUTE)).count(store=Store.default(caching=False))
    left, right = app.stream("left", **TEXT), app.stream("right", **TEXT)
    left.join(
        right,
        lambda a, b: a,
        within=MINUTE,
        name="j",
        store=Store.default(logged=False),
        other_store=Store.default(logged={"min.compaction.lag.ms": 5}),
    )
    found = specs(app)
    assert list(found) == [
        "tally-STATE-STORE",
        "KSTREAM-AGGREGATE-0000000002-STATE-STORE",
        "j-this-join-store",
        "j-other-join-store",
    ]
    tally, by_minute, this, other = found.values()
    assert (tally.caching, tally.logged) == (False, False)
    assert (by_minute.caching, by_minute.logged) == (False, True)
    assert (this.logged, other.logged) == (False, True)
    assert other.topic_settings["min.compaction.lag.ms"] == "5"


def test_steps_that_make_tables_of_tables_name_their_stores_too() -> None:
    app = App("a")
    left, right = app.table("left", **TEXT), app.table("right", **TEXT)
    unnamed = Store.default(caching=False, **TEXT)
    left.map_values(str.upper, store=unnamed, name="upper")
    left.filter(lambda key, value: True, store=unnamed)
    left.join(right, lambda a, b: a, store=unnamed, name="j")
    left.join(right, lambda a, b: a, foreign_key=lambda k, v: v, store=unnamed, name="f")
    found = specs(app)
    assert {"upper-STATE-STORE", "j-STATE-STORE", "f-result-STATE-STORE"} <= found.keys()
    assert not found["j-STATE-STORE"].caching
    assert sum("FILTER" in name for name in found) == 1


def test_a_store_without_a_name_belongs_to_a_step_of_the_dsl() -> None:
    with pytest.raises(TopologyError, match="'add_store': this store needs a name"):
        App("a").add_store(Store.default(**TEXT))


def test_an_application_whose_stores_and_topics_are_all_named_is_accepted() -> None:
    app = build_all_kinds(ensure_explicit_internal_resource_naming=True)
    app.stream("more-lines", **TEXT).group_by(
        lambda k, v: v, key=serdes.string, name="by-value"
    ).count(store="KSTREAM-AGGREGATE-STATE-STORE-0000000003")  # named so in Java
    assert app.topology().repartition_topics


@pytest.mark.parametrize(
    ("describe", "names"),
    [
        (lambda lines, app: lines.group_by_key().count(), ["'KSTREAM-AGGREGATE-00000"]),
        (
            lambda lines, app: lines.group_by(lambda k, v: v, key=serdes.string).count(),
            ["-STATE-STORE'", "-STATE-STORE-repartition'"],
        ),
        (
            lambda lines, app: lines.select_key(str, key=serdes.string).repartition(),
            ["REPART"],
        ),
        (
            lambda lines, app: lines.outer_join(lines, lambda a, b: a, within=MINUTE),
            ["KSTREAM-OUTERTHIS-", "KSTREAM-OUTEROTHER-", "KSTREAM-OUTERSHARED-"],
        ),
        (
            lambda lines, app: (
                lines.group_by_key().count(store="c").suppress(until_time_limit(MINUTE))
            ),
            ["KTABLE-SUPPRESS-"],
        ),
        (
            lambda lines, app: app.table("rows", **TEXT, store="rows").join(
                app.table("more", **TEXT, store="more"), lambda a, b: a, foreign_key=lambda k, v: v
            ),
            ["KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-"],
        ),
    ],
)
def test_generated_names_are_refused_where_all_must_be_given(describe: Any, names: Any) -> None:
    for demanded in (False, True):
        app = App("a", ensure_explicit_internal_resource_naming=demanded)
        describe(app.stream("lines", **TEXT).map(lambda k, v: (k, v), **TEXT), app)
        if not demanded:
            app.topology()
            continue
        with pytest.raises(TopologyError, match="which change with the steps") as caught:
            app.topology()
        assert not [name for name in names if name not in str(caught.value)]


@pytest.mark.parametrize(("suppressed", "argument"), [(False, "store"), (True, "name")])
def test_the_error_names_the_argument_that_names_the_store(suppressed: bool, argument: str) -> None:
    app = App("a", ensure_explicit_internal_resource_naming=True)
    counts = app.stream("lines", **TEXT).group_by_key().count(store="c" if suppressed else None)
    if suppressed:
        counts.suppress(until_time_limit(MINUTE))
    with pytest.raises(TopologyError, match=rf"stores [a-z ]*\({argument}=\.\.\.\) '"):
        app.topology()


def test_names_that_java_has_generated_replace_those_that_no_argument_gives() -> None:
    java = {
        "j-outer-shared-join-store": "KSTREAM-OUTERSHARED-0000000004-store",
        "f-subscription-registration-topic": "KTABLE-FK-REGISTRATION-0000000014-topic",
        "f-subscription-response-topic": "KTABLE-FK-RESPONSE-0000000022-topic",
        "f-subscription-store": "KTABLE-FK-STATE-STORE-0000000018",
    }
    app = App("a", internal_names=java, ensure_explicit_internal_resource_naming=True)
    lines, others = app.stream("lines", **TEXT), app.stream("others", **TEXT)
    lines.outer_join(others, lambda a, b: f"{a}{b}", within=MINUTE, name="j")
    rows, more = app.table("rows", **TEXT, store="rows"), app.table("more", **TEXT, store="more")
    rows.join(more, lambda a, b: a, foreign_key=lambda k, v: v, name="f")
    assert {java["j-outer-shared-join-store"], java["f-subscription-store"]} <= specs(app).keys()
    topics = {f"a-{name}" for here, name in java.items() if here.endswith("-topic")}
    assert app.topology().repartition_topics == topics


def test_a_name_to_replace_that_the_application_does_not_have_is_refused() -> None:
    app = App("a", internal_names={"j-left-shared-join-store": "KSTREAM-OUTERSHARED-0-store"})
    lines, others = app.stream("lines", **TEXT), app.stream("others", **TEXT)
    lines.outer_join(others, lambda a, b: f"{a}{b}", within=MINUTE, name="j")
    with pytest.raises(TopologyError, match=r"'j-left-.*does not have.*'j-outer-shared-join"):
        app.topology()
    app = App("a")
    app.stream("lines", **TEXT).to("copy")
    app.configure(None, internal_names={"x": "y"})
    with pytest.raises(TopologyError, match="give it in Python"):
        app.topology()


@pytest.mark.parametrize("names", [{"a": "b c"}, {"a": "x", "b": "x"}, {"a": 1}, ["a"]])
def test_names_that_can_not_be_are_refused(names: Any) -> None:
    with pytest.raises(ConfigError, match="internal_names"):
        App("a", internal_names=names)


def test_names_in_the_environment_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLRACE_INTERNAL_NAMES", '{"j-this-join-store": "this"}')
    app = App("a")
    lines, others = app.stream("lines", **TEXT), app.stream("others", **TEXT)
    lines.join(others, lambda a, b: f"{a}{b}", within=MINUTE, name="j", value=serdes.string).to("o")
    stores = {store.name for sub in app.topology().subtopologies for store in sub.stores}
    assert stores == {"this", "j-other-join-store"}
