"""Test that names which are no part of a topic's name are refused, as Kafka Streams' Named does."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from streams import App, Store, serdes, windows
from streams.dsl.stream import Stream
from streams.errors import ConfigError, TopologyError

TEXT: Any = {"key": serdes.string, "value": serdes.string}
ILLEGAL: list[Any] = [".", "..", "", "a/b", "../b", "a b", "ü", "a\n", "a\0", "x" * 250, 7, b"a"]
LEGAL = ["a", "...", ".a", "A-b_c.9", "x" * 200]


def lines(app: App) -> Stream[str, str]:
    return app.stream("lines", **TEXT)


def by_value(app: App, name: Any) -> Any:
    return lines(app).group_by(lambda key, value: value, key=serdes.string, name=name)


NAMED: dict[str, Callable[[App, Any], Any]] = {
    "source": lambda app, name: app.stream("lines", **TEXT, name=name).to("out"),
    "step": lambda app, name: lines(app).map_values(str.upper, name=name).to("out"),
    "sink": lambda app, name: lines(app).to("out", name=name),
    "repartition": lambda app, name: lines(app).repartition(name=name).to("out"),
    "table": lambda app, name: app.table("rows", **TEXT, name=name),
    "group": lambda app, name: by_value(app, name).count(),
    "group by key": lambda app, name: lines(app).group_by_key(name=name).count(),
    "aggregation": lambda app, name: lines(app).group_by_key().count(name=name),
    "store": lambda app, name: lines(app).group_by_key().count(store=Store.persistent(name)),
    "store by its name": lambda app, name: lines(app).group_by_key().count(store=name),
    "store of a table": lambda app, name: app.table("rows", **TEXT, store=name),
    "store of windows": lambda app, name: (
        lines(app).group_by_key().windowed_by(windows.tumbling(10)).count(store=name)
    ),
    "join": lambda app, name: (
        lines(app)
        .join(app.stream("b", **TEXT), lambda a, b: a + b, within=5, value=serdes.string, name=name)
        .to("out")
    ),
    "store of a join": lambda app, name: (
        lines(app)
        .join(
            app.stream("b", **TEXT), lambda a, b: a + b, within=5, value=serdes.string, store=name
        )
        .to("out")
    ),
    "unlogged store": lambda app, name: (
        lines(app).group_by_key().count(store=Store.in_memory(name, logged=False))
    ),
    "branch": lambda app, name: (
        lines(app).split({"x": lambda key, value: True}, name=name)["x"].to("out")
    ),
    "merge": lambda app, name: lines(app).merge(app.stream("b", **TEXT), name=name).to("out"),
}


@pytest.mark.parametrize("name", ILLEGAL, ids=repr)
@pytest.mark.parametrize("kind", NAMED)
def test_a_step_or_store_is_refused_by_its_name_when_the_topology_is_built(
    kind: str, name: Any
) -> None:
    app = App("a")

    def build() -> None:
        NAMED[kind](app, name)
        app.topology()

    with pytest.raises(TopologyError, match=re.escape(repr(name))):
        build()


@pytest.mark.parametrize("name", LEGAL)
@pytest.mark.parametrize("kind", NAMED)
def test_a_legal_name_is_taken(kind: str, name: str) -> None:
    app = App("a")
    NAMED[kind](app, name)
    assert app.topology().subtopologies


@pytest.mark.parametrize("name", [*ILLEGAL, "x" * 201], ids=repr)
def test_an_application_id_is_refused_when_the_application_is_created(name: Any) -> None:
    with pytest.raises(ConfigError) as raised:
        App(name)
    assert f"application id {name!r}: topics and the directory" in str(raised.value)
    assert "give another one, of letters, digits, '.', '_' and '-', at most 200" in str(
        raised.value
    )


@pytest.mark.parametrize("name", LEGAL)
def test_a_legal_application_id_is_taken(name: str) -> None:
    assert App(name).application_id == name


@pytest.mark.parametrize("kind", ["repartition", "group", "store", "aggregation"])
def test_the_topic_of_application_and_name_has_at_most_249_characters(kind: str) -> None:
    suffix = {"repartition": "-repartition", "group": "-repartition"}.get(kind, "-changelog")
    if kind == "aggregation":
        suffix = "-STATE-STORE-changelog"
    longest = 249 - len(f"{'i' * 100}-{suffix}")
    taken, refused = App("i" * 100), App("i" * 100)
    NAMED[kind](taken, "n" * longest)
    taken.topology()
    NAMED[kind](refused, "n" * (longest + 3))
    with pytest.raises(TopologyError, match=r"would be 'ii.*nn.* has at most 249 characters: give "
                       r"a name that is shorter by 3"):  # fmt: skip
        refused.topology()


@pytest.mark.parametrize("topic", [".", "..", "", "a/b", "x" * 250])
def test_topics_have_legal_names(topic: str) -> None:
    app = App("a")
    with pytest.raises(TopologyError, match=f"{re.escape(repr(topic))} is not a topic's name"):
        app.stream(topic, **TEXT)
    with pytest.raises(TopologyError, match=f"{re.escape(repr(topic))} is not a topic's name"):
        lines(app).to(topic)
