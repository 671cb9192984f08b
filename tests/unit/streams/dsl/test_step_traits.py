"""Test what the DSL says of its steps: by it they are checked, optimized and recomputed."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import streams
from streams import App, Processor, serdes
from streams.graph.nodes import ProcessorNode
from streams.graph.step_traits import StepTraits


class Idle(Processor[str, int, str, int]):
    pass


def describe_steps() -> dict[str, ProcessorNode]:
    """Return by its name each step of an application that has one of most kinds."""
    app = App("traits")
    source = app.stream("in", key=serdes.string, value=serdes.int64)
    source.filter(lambda k, v: v, name="filter")
    source.map(lambda k, v: (k, v), name="map")
    source.map_values(lambda v: v, name="map_values")
    source.flat_map(lambda k, v: [(k, v)], name="flat_map")
    source.select_key(lambda k, v: k, name="select_key")
    source.peek(print, name="peek")
    source.for_each(print, name="for_each")
    source.print(name="print")
    source.merge(source.filter_not(lambda k, v: v, name="filter_not"), name="merge")
    source.split({"odd": lambda k, v: v % 2}, name="split")
    source.process(Idle, name="process")
    source.to_table(name="to_table")
    source.group_by_key().count(name="count")
    rows = app.table("rows", key=serdes.string, value=serdes.int64, name="table")
    everywhere = app.global_table("everywhere", key=serdes.string, value=serdes.int64)
    source.join(rows, lambda a, b: a, name="join")
    source.left_join(rows, lambda a, b: a, name="left_join")
    source.join(everywhere, lambda a, b: a, key=lambda k, v: k, name="global")
    rows.filter(lambda k, v: v, name="rows_filter").to_stream(name="to_stream")
    rows.join(rows.map_values(lambda v: v, name="rows_map"), lambda a, b: a, name="rows_join")
    other = app.table("other", key=serdes.string, value=serdes.int64)
    rows.join(other, lambda a, b: a, foreign_key=lambda k, v: k, name="foreign")
    steps = app.topology().subtopologies
    return {n.name: n for sub in steps for n in sub.nodes if isinstance(n, ProcessorNode)}


STATELESS = {"filter", "filter_not", "map", "map_values", "flat_map", "select_key", "peek"} | {
    "for_each",
    "print",
    "merge",
    "split",
    "split-odd",
}
STEPS_BY_TRAIT: dict[str, set[str]] = {
    "is_stateless": STATELESS,
    "forwards_unchanged": STATELESS - {"map", "map_values", "flat_map", "select_key"},
    "keeps_latest": {"map_values", "peek", "for_each", "print", "to_stream"},
    "has_side_effects": {"peek", "for_each", "print"},
    "names_children": {"split", "foreign-subscription-response-resolver"},
    "runs_processor": {"process"},
    "joins_without_key": {"left_join"},
    "looks_up_global_store": {"global"},
    "only_forwards": {"to_stream"},
    "reads_table_topic": {"table"},
    "takes_latest": {"table", "to_table"},
    "computes_rows": {"rows_filter", "rows_map", "rows_join-join-this", "rows_join-join-other"}
    | {"rows_join"},
    "keeps_keys": {"filter", "filter_not", "map_values", "peek", "for_each", "print", "to_stream"},
    "is_never_wrapped": {"process"},
    "joins_tables": {"rows_join-join-this", "rows_join-join-other"},
}
DROPS_NOTHING = {"map", "map_values", "select_key", "peek", "for_each", "print", "merge"}


def select_named(steps: dict[str, ProcessorNode], trait: str, value: bool) -> set[str]:
    """Return the steps that have a trait, or have it not, without those that have made-up names."""
    found = {name for name, node in steps.items() if bool(getattr(node.traits, trait)) is value}
    return {name for name in found if not re.match(r"K|.*-repartition", name)}


@pytest.mark.parametrize("trait", STEPS_BY_TRAIT)
def test_only_these_steps_have_the_trait(trait: str) -> None:
    assert select_named(describe_steps(), trait, True) == STEPS_BY_TRAIT[trait]


def test_a_step_drops_records_unless_it_says_that_it_drops_none() -> None:
    assert select_named(describe_steps(), "drops_records", False) == DROPS_NOTHING


def test_every_trait_is_held_by_a_test_here() -> None:
    assert {each.name for each in fields(StepTraits)} == {*STEPS_BY_TRAIT, "drops_records"}


def test_nothing_is_concluded_from_the_name_of_a_kind() -> None:
    root = Path(str(streams.__file__)).parent
    concludes = re.compile(
        r"""(==|!=|\bin|startswith\()\s*[({\[]*f?["'](KSTREAM|KTABLE|COGROUP)|"""
        r"""kind(\s+(not\s+)?in\s|\.startswith)\s*[({\[_]*(KSTREAM|KTABLE|[A-Z_]*STEP|STATELESS)"""
    )
    found: list[Any] = [
        (path.name, line)
        for path in root.rglob("*.py")
        for line in path.read_text().splitlines()
        if concludes.search(line)
    ]
    assert not found, "a step says by its traits what may be known of it (graph/step_traits.py)"
