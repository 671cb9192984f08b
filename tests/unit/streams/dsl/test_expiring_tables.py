"""Test which operations tables whose rows expire (`ttl=`) support, and which are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streams import App, Store, TopologyTestDriver, serdes, until_time_limit
from streams.dsl.table import Table
from streams.errors import TopologyError
from streams.processor.transformer import ValueTransformer

TEXT: Any = {"key": serdes.string, "value": serdes.string}
TTL_MS = 10

Make = Callable[[App], Table[Any, Any]]
Use = Callable[[App, Table[Any, Any]], object]


def expiring(name: str = "rows", **more: Any) -> Store:
    return Store.in_memory(name, ttl=TTL_MS, **more)


def rows(app: App) -> Table[str, str]:
    return app.table("rows", **TEXT, store=expiring())


def other(app: App) -> Table[str, str]:
    return app.table("other", **TEXT, store="other")


def pair(one: Any, two: Any) -> str:
    return f"{one}{two}"


class Same(ValueTransformer[str, str, str]):
    """Returns every row unchanged."""

    def transform(self, key: str, value: str | None) -> str | None:
        return value


EXPIRING: dict[str, Make] = {
    "a topic's": rows,
    "a stream's": lambda app: app.stream("rows", **TEXT).to_table(store=expiring()),
    "filtered": lambda app: rows(app).filter(lambda key, value: True),
    "mapped and kept": lambda app: rows(app).map_values(str.upper, store="upper"),
    "transformed": lambda app: rows(app).transform_values(Same),
    "filtered into it": lambda app: other(app).filter(lambda key, value: True, store=expiring()),
    "joined into it": lambda app: other(app).join(
        app.table("third", **TEXT), pair, store=expiring(value=serdes.string)
    ),
    "joined by a foreign key into it": lambda app: other(app).join(
        app.table("third", **TEXT),
        pair,
        foreign_key=lambda key, value: value,
        store=expiring(value=serdes.string),
    ),
    "a cogroup": lambda app: (
        app.stream("rows", **TEXT)
        .group_by_key()
        .cogroup(lambda key, value, so_far: value)
        .aggregate(str, value=serdes.string, store=expiring())
    ),
    "a stream's aggregate": lambda app: (
        app.stream("rows", **TEXT).group_by_key().reduce(max, store=expiring())
    ),
}
REFUSED: dict[str, Use] = {
    "group_by": lambda app, table: table.group_by(
        lambda key, value: ("all", value), **TEXT, name="use"
    ),
    "join": lambda app, table: table.join(app.table("last", **TEXT), pair, name="use"),
    "join, the other": lambda app, table: app.table("last", **TEXT).join(table, pair, name="use"),
    "left_join": lambda app, table: table.left_join(app.table("last", **TEXT), pair, name="use"),
    "left_join, the other": lambda app, table: app.table("last", **TEXT).left_join(
        table, pair, name="use"
    ),
    "outer_join": lambda app, table: table.outer_join(app.table("last", **TEXT), pair, name="use"),
    "join by a foreign key": lambda app, table: table.join(
        app.table("last", **TEXT), pair, foreign_key=lambda key, value: value, name="use"
    ),
    "join by a foreign key, the other": lambda app, table: app.table("last", **TEXT).left_join(
        table, pair, foreign_key=lambda key, value: value, name="use"
    ),
    "suppress": lambda app, table: table.suppress(until_time_limit(5), name="use"),
}


@pytest.mark.parametrize("use", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("make", EXPIRING.values(), ids=EXPIRING)
def test_what_needs_to_be_told_of_a_row_that_goes_is_refused_where_rows_expire(
    make: Make, use: Use
) -> None:
    app = App("a")
    table = make(app)
    with pytest.raises(TopologyError) as refused:
        use(app, table)
    message = str(refused.value)
    assert "step 'use'" in message
    assert "store 'rows' (ttl=)" in message
    assert "delete rows by records without a value" in message


def test_groups_of_a_tables_rows_may_not_expire() -> None:
    grouped = other(App("a")).group_by(lambda key, value: ("all", value), **TEXT)
    with pytest.raises(TopologyError, match=r"step 'n'.*store 'rows' has ttl="):
        grouped.count(store=expiring(), name="n")


@pytest.mark.parametrize("use", REFUSED.values(), ids=REFUSED)
def test_a_table_that_no_longer_expires_may_be_used(use: Use) -> None:
    """Test that a stream can be made a table again, which then keeps rows that expired upstream."""
    app = App("a")
    use(app, rows(app).to_stream().to_table(store="kept"))
    app.topology()


def deletion_after(
    use: Callable[[Table[str, str]], Table[str, str]], *, caching: bool, sweeps: bool
) -> list[Any]:
    """Return the results of a row that expires and is then deleted, each after its own commit."""
    app = App("a")
    table = app.table("rows", **TEXT, store=expiring(caching=caching))
    use(table).to_stream().to("out", **TEXT)
    with TopologyTestDriver(app) as driver:
        topic = driver.topic("rows")
        topic.pipe("k", "v", timestamp_ms=1)
        topic.pipe("l", "w", timestamp_ms=50)
        if sweeps:
            topic.pipe("l", "x", timestamp_ms=51)
        topic.pipe("k", None, timestamp_ms=52)
        return [each.value for each in driver.topic("out").read_all() if each.key == "k"]


USES: dict[str, Callable[[Table[str, str]], Table[str, str]]] = {
    "as it is": lambda table: table,
    "filtered": lambda table: table.filter(lambda key, value: True),
    "filtered twice": lambda table: table.filter(lambda k, v: True).filter_not(lambda k, v: False),
    "filtered into a store": lambda table: table.filter(lambda k, v: True, store="some"),
    "filtered into another that expires": lambda table: table.filter(
        lambda k, v: True, store=expiring("some", caching=False)
    ),
    "mapped": lambda table: table.map_values(lambda value: value),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("sweeps", [False, True])
@pytest.mark.parametrize("caching", [False, True])
def test_a_deletion_of_what_has_expired_is_passed_on(
    caching: bool, sweeps: bool, use: Callable[[Table[str, str]], Table[str, str]]
) -> None:
    """Test that the deletion of an expired row is passed on, as its expiry was not."""
    assert deletion_after(use, caching=caching, sweeps=sweeps) == ["v", None]
