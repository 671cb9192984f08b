"""Test that the types of two versions are compared as their serdes read one another's messages."""

from __future__ import annotations

import json
import re
from copy import copy
from dataclasses import dataclass, field, make_dataclass, replace
from datetime import date
from decimal import Decimal
from enum import Enum
from functools import partial
from typing import Any, Literal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import App, serdes
from streams.serdes import Serde
from streams.serdes.described_types import (
    DescribedType,
    describe_declared_type,
    type_from_plain,
    type_to_plain,
)
from streams.topology.compare_versions import UpgradePlan, compare_topologies
from streams.topology.compatibility import find_conflicts
from streams.topology.declared import declare_topology, decode_topology, encode_topology
from streams.topology.description import (
    TopologyDescription,
    describe_topology,
    description_from_json,
    description_to_json,
)
from streams.topology.renamed_fields import find_renamed_fields
from streams.topology.state_effects import StateEffect, StateOutcome
from streams.topology.type_compatibility import compare_types, have_equal_bytes
from tests import edge_values as edges
from tests.unit.properties import examples


class Few(Enum):
    RED = "red"


class More(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Node:
    size: int
    child: Node | None = None


@dataclass
class WiderNode:
    size: float
    child: WiderNode | None = None


VALUES: dict[Any, st.SearchStrategy[Any]] = {
    int: edges.integers,
    float: edges.floats | edges.integers,
    str: edges.texts,
    bool: st.booleans(),
    date: edges.dates,
    UUID: edges.uuids,
    Decimal: edges.decimals,
    Few: st.sampled_from(Few),
    More: st.sampled_from(More),
    int | None: edges.integers | st.none(),
    str | int: edges.texts | edges.integers,
    Literal["red"]: st.just("red"),
    list[int]: st.lists(edges.integers, max_size=2),
    set[int]: st.sets(edges.integers, max_size=2),
    tuple[int, str]: st.tuples(edges.integers, edges.texts),
    tuple[int, ...]: st.lists(edges.integers, max_size=2).map(tuple),
    dict[str, int]: st.dictionaries(edges.texts, edges.integers, max_size=2),
    dict[str, Node]: st.dictionaries(edges.texts, st.builds(Node, edges.integers), max_size=1),
    Node: st.builds(Node, edges.integers, st.none() | st.builds(Node, edges.integers)),
    WiderNode: st.builds(WiderNode, edges.integers),
    Any: edges.PLAIN,
}
TYPES = st.sampled_from(list(VALUES))
Fields = dict[str, tuple[Any, bool]]
FIELDS = st.dictionaries(st.sampled_from("abc"), st.tuples(TYPES, st.booleans()), min_size=1)


DEFAULTS: dict[Any, Any] = {
    int: 0,
    float: 0.5,
    str: "",
    bool: False,
    date: date.min,
    UUID: UUID(int=0),
    Decimal: Decimal(0),
    Few: Few.RED,
    More: More.RED,
    int | None: None,
    str | int: "",
    Literal["red"]: "red",
    list[int]: [],
    set[int]: set(),
    tuple[int, str]: (0, ""),
    tuple[int, ...]: (),
    dict[str, int]: {},
    dict[str, Node]: {},
    Node: Node(0),
    WiderNode: WiderNode(0),
    Any: None,
}


def create_class(fields: Fields) -> type[Any]:
    """Return a dataclass of fields, each with its type and whether it has a default."""
    found: list[Any] = [
        (name, hint, field(default_factory=partial(copy, DEFAULTS[hint])) if optional else field())
        for name, (hint, optional) in fields.items()
    ]
    return make_dataclass("Total", found, kw_only=True)


def read(serde: Serde[Any], data: bytes) -> tuple[Any, ValueError | None]:
    try:
        return serde.deserialize(data), None
    except ValueError as error:
        return None, error


def type_of(serde: Serde[Any]) -> DescribedType:
    assert serde.message_type is not None
    return serde.message_type


@examples(500)
@given(FIELDS, st.data(), st.sampled_from(["ignore", "refuse", "keep"]))
def test_what_is_said_to_be_compatible_is_read_without_a_loss(
    old_fields: Fields, data: st.DataObject, unknown: Any
) -> None:
    changed = data.draw(st.dictionaries(st.sampled_from("abcd"), st.tuples(TYPES, st.booleans())))
    gone = data.draw(st.sets(st.sampled_from("abc"), max_size=1))
    new_fields = {n: f for n, f in {**old_fields, **changed}.items() if n not in gone}
    cls, new_cls = create_class(old_fields), create_class(new_fields)
    old, new = serdes.json(cls), serdes.json(new_cls, unknown=unknown)
    found = compare_types(type_of(old), type_of(new))
    value = cls(**{name: data.draw(VALUES[hint]) for name, (hint, _) in old_fields.items()})
    message = old.serialize(value)
    value, error = read(new, message)
    if found.is_backward:
        assert error is None
        if unknown == "keep" or not found.backward:
            again = serdes.json.deserialize(new.serialize(value))
            assert set(serdes.json.deserialize(message)) <= set(again)


ONE: Fields = {"count": (int, True), "cents": (int, True)}
MORE: Fields = {**ONE, "biggest": (int, True)}
OTHER: Fields = {"count": (int, False), "biggest": (int, False)}


@pytest.mark.parametrize(
    ("old", "new", "directions"),
    [
        (ONE, MORE, "backward yes, forward without biggest"),
        (MORE, ONE, "backward without biggest, forward yes"),
        (ONE, OTHER, "backward no, forward without biggest"),
        (OTHER, ONE, "backward without biggest, forward no"),
        ({"a": (int, False)}, {"a": (int, True)}, "backward yes, forward yes"),
        ({"a": (int, False)}, {"a": (float, False)}, "backward yes, forward no"),
        ({"a": (int, False)}, {"a": (str, False)}, "backward no, forward no"),
        ({"a": (int, False)}, {"a": (int | None, False)}, "backward yes, forward no"),
        ({"a": (Few, False)}, {"a": (More, False)}, "backward yes, forward no"),
        ({"a": (More, False)}, {"a": (str, False)}, "backward yes, forward no"),
        ({"a": (UUID, False)}, {"a": (str, False)}, "backward yes, forward no"),
        ({"a": (Node, False)}, {"a": (WiderNode, False)}, "backward yes, forward no"),
        ({"a": (set[int], False)}, {"a": (list[int], False)}, "backward yes, forward no"),
        ({"a": (tuple[int, int], False)}, {"a": (list[int], False)}, "backward yes, forward no"),
    ],
)
def test_a_change_is_compatible_in_some_directions(
    old: Fields, new: Fields, directions: str
) -> None:
    a, b = (describe_declared_type(create_class(each), "ignore") for each in (old, new))
    assert str(compare_types(a, b)) == f"compatible {directions}"


def test_a_described_type_is_read_as_it_was_written() -> None:
    cls = create_class({"a": (Node, True), "b": (More, False)})
    described = describe_declared_type(cls, "keep")
    assert type_from_plain(json.loads(json.dumps(type_to_plain(described)))) == described


def test_keys_have_equal_bytes_only_with_their_fields_in_one_order() -> None:
    fields: Fields = {"a": (int, False), "b": (str, False)}
    turned = dict(reversed(fields.items()))
    one, other, same = (
        describe_declared_type(create_class(each), "ignore") for each in (fields, turned, fields)
    )
    assert have_equal_bytes(one, same)
    assert not have_equal_bytes(one, other)


def totals(
    fields: Fields, unknown: Any = "ignore", key: Serde[Any] = serdes.string
) -> TopologyDescription:
    """Describe a topology with a store of totals, behind a repartition topic of totals."""
    app, cls = App("d3"), create_class(fields)
    serde = serdes.json(cls, unknown=unknown)
    stream = app.stream("pay", key=serdes.string, value=serdes.int64).map_values(
        lambda value: value, value=serde
    )
    grouped = stream.group_by(lambda k, v: k, key=key, name="by-key")
    grouped.reduce(lambda a, b: b, store="totals")
    return describe_topology(app.topology())


def effects_on(plan: UpgradePlan, name: str) -> tuple[StateEffect, ...]:
    return next((each.effects for each in plan.changes if each.name == name), ())


def test_a_field_with_a_default_more_is_kept_and_not_rolled_out_beside_the_old_version() -> None:
    plan = compare_topologies(totals(ONE), totals(MORE))
    (effect,) = effects_on(plan, "totals")
    assert effect.outcome is StateOutcome.KEPT
    assert effect.difference == (
        "type of values: +biggest; compatible backward yes, forward without biggest"
    )
    assert "it leaves out biggest of the values that it writes again" in effect.reason
    (conflict,) = plan.conflicts
    assert conflict == (
        "the old version leaves out biggest of what the new one has written into 'totals' when it "
        'writes it again; rolled out first, serdes.json(..., unknown="keep") keeps it '
        "(docs/upgrading.md, fields of dataclasses)"
    )


def test_an_old_version_that_keeps_unknown_fields_may_run_beside_the_new_one() -> None:
    plan = compare_topologies(totals(ONE, "keep"), totals(MORE, "keep"))
    assert plan.conflicts == ()
    assert not plan.loses_state


def test_a_version_that_keeps_unknown_fields_no_more_may_drop_those_of_a_version_before() -> None:
    plan = compare_topologies(totals(ONE, "keep"), totals(ONE))
    (effect,) = effects_on(plan, "totals")
    assert effect.outcome is StateOutcome.REDUCED
    assert "fields that the old version keeps and does not declare are dropped" in effect.reason
    assert effect.remedy.startswith('leave unknown="keep"')
    (of_topic,) = effects_on(plan, "d3-by-key-repartition")
    assert of_topic.outcome is StateOutcome.KEPT, "what is in a topic is not written again"
    first_step = compare_topologies(totals(ONE), totals(ONE, "keep"))
    assert not first_step.loses_state
    assert first_step.conflicts == ()


def test_a_field_without_a_default_more_loses_the_store_and_what_is_in_a_topic() -> None:
    plan = compare_topologies(totals(ONE), totals(OTHER))
    for name in ("totals", "d3-by-key-repartition"):
        (effect,) = effects_on(plan, name)
        assert effect.outcome is StateOutcome.LOST
        assert "biggest: Total needs it, and no message has it" in effect.reason
        assert effect.remedy.startswith("give biggest a default; or ")
    assert any("can't read what the old version writes" in each for each in plan.conflicts)


def joined(fields: Fields) -> TopologyDescription:
    """Describe a foreign-key join whose left table has rows of some fields."""
    app = App("d3")
    rows = serdes.json(create_class(fields))
    left = app.table("rows", key=serdes.string, value=rows, store="rows")
    right = app.table("others", key=serdes.string, value=serdes.string, store="others")
    left.join(
        right, lambda a, b: b, foreign_key=lambda k, v: k, value=serdes.string, name="j", store="r"
    )
    return describe_topology(app.topology())


@pytest.mark.parametrize("new", [MORE, dict(reversed(ONE.items()))])
def test_rows_of_a_foreign_key_join_with_other_bytes_lose_their_subscriptions(new: Fields) -> None:
    plan = compare_topologies(joined(ONE), joined(new))
    for name in ("j-subscription-store", "d3-j-subscription-registration-topic"):
        (effect,) = effects_on(plan, name)
        assert effect.outcome is StateOutcome.LOST
        assert "known by the hash of their bytes" in effect.reason
        assert effect.remedy.startswith("leave the rows of the left table as they were")
    assert plan.conflicts
    assert not compare_topologies(joined(ONE), joined(ONE)).loses_state


def test_rows_of_a_global_table_that_can_no_longer_be_read_are_lost() -> None:
    def table(fields: Fields) -> TopologyDescription:
        app = App("d3")
        rows = serdes.json(create_class(fields))
        app.global_table("rows", key=serdes.string, value=rows, store="rows")
        app.stream("in", key=serdes.string, value=serdes.string).to("out")
        return describe_topology(app.topology())

    plan = compare_topologies(table(ONE), table(OTHER))
    (effect,) = effects_on(plan, "rows")
    assert effect.outcome is StateOutcome.LOST
    assert effect.remedy == (
        "give biggest a default; or write these rows into the topic anew before the new version "
        "starts"
    )
    assert not compare_topologies(table(ONE), table(MORE)).loses_state


@examples(100)
@given(FIELDS, st.dictionaries(st.sampled_from("abcd"), st.tuples(TYPES, st.booleans())))
def test_values_are_kept_if_the_advice_about_fields_is_followed(old: Fields, new: Fields) -> None:
    lost = [
        effect
        for effect in effects_on(compare_topologies(totals(old), totals(new)), "totals")
        if effect.outcome is StateOutcome.LOST
    ]
    for effect in lost:
        missing = re.search(r"give ([\w., ]+) a default", effect.remedy)
        advised = dict(new)
        for path in missing[1].split(", ") if missing else []:
            advised[path] = (new[path][0], True)
        if "as they were" in effect.remedy:
            advised.update({name: field for name, field in old.items() if name in new})
        found = effects_on(compare_topologies(totals(old), totals(advised)), "totals")
        outcome = StateOutcome.REDUCED if old.keys() - advised.keys() else StateOutcome.KEPT
        assert all(each.outcome is outcome for each in found)


def test_a_field_less_is_gone_when_the_value_is_written_again() -> None:
    (effect,) = effects_on(compare_topologies(totals(MORE), totals(ONE)), "totals")
    assert effect.outcome is StateOutcome.REDUCED
    assert effect.reason == (
        "what it has is read without biggest, and values of field biggest are dropped at the next "
        "write"
    )
    assert effect.remedy.startswith("leave biggest as it was")


def test_a_plan_with_a_field_less_loses_state_unless_unknown_fields_are_kept() -> None:
    assert compare_topologies(totals(MORE), totals(ONE)).loses_state
    assert not compare_topologies(totals(MORE, "keep"), totals(ONE, "keep")).loses_state


PRICED: Fields = {"cents": (int, True), "note": (str, True)}
RENAMED: Fields = {("amount" if name == "cents" else name): of for name, of in PRICED.items()}


def test_a_field_that_is_renamed_is_told_from_one_that_is_added() -> None:
    plan = compare_topologies(totals(PRICED), totals(RENAMED))
    assert plan.loses_state
    (of_store,) = effects_on(plan, "totals")
    assert of_store.outcome is StateOutcome.REDUCED
    assert of_store.difference.endswith("; looks renamed: cents -> amount")
    assert "values of field cents are dropped at the next write; amount takes its default" in (
        of_store.reason
    )


def test_a_field_that_is_renamed_is_not_found_in_what_a_repartition_topic_has() -> None:
    plan = compare_topologies(totals(PRICED), totals(RENAMED))
    (of_topic,) = effects_on(plan, "d3-by-key-repartition")
    assert of_topic.outcome is StateOutcome.REDUCED
    assert of_topic.reason == "what it has is read without cents; amount takes its default"
    less = {name: of for name, of in PRICED.items() if name != "cents"}
    (of_topic,) = effects_on(
        compare_topologies(totals(PRICED), totals(less)), "d3-by-key-repartition"
    )
    assert of_topic.outcome is StateOutcome.KEPT


def test_of_two_fields_of_one_type_none_is_called_renamed() -> None:
    old: Fields = {"a": (int, True), "b": (int, True)}
    new: Fields = {"c": (int, True), "d": (int, True)}
    (effect,) = effects_on(compare_topologies(totals(old), totals(new)), "totals")
    assert effect.outcome is StateOutcome.REDUCED
    assert "renamed" not in effect.difference


def test_a_field_within_a_list_may_be_renamed() -> None:
    old, new = (
        describe_declared_type(create_class({"rows": (list[each], False)}), "ignore")  # type: ignore[valid-type]
        for each in (create_class({"a": (str, True)}), create_class({"b": (str, True)}))
    )
    assert [*find_renamed_fields(old, new)] == [("rows.a", "rows.b")]


def test_a_class_that_is_renamed_loses_nothing() -> None:
    old, new = totals(ONE), totals(ONE)
    renamed = description_to_json(new).replace("json(Total)", "json(Sum)")
    assert not compare_topologies(old, description_from_json(renamed, "x")).loses_state


def test_keys_of_other_fields_lose_the_store() -> None:
    fields: list[Fields] = [{"id": (int, False)}, {"id": (str, False)}]
    old, new = (serdes.json(create_class(each)) for each in fields)
    plan = compare_topologies(totals(ONE, key=old), totals(ONE, key=new))
    (effect,) = effects_on(plan, "totals")
    assert effect.outcome is StateOutcome.LOST
    assert effect.difference == "type of keys: id: int -> str"
    assert any("the keys of 'totals'" in each for each in plan.conflicts)


def test_keys_with_their_fields_in_another_order_lose_the_store() -> None:
    keys = [serdes.json(create_class(each)) for each in (ONE, dict(reversed(ONE.items())))]
    plan = compare_topologies(totals(ONE, key=keys[0]), totals(ONE, key=keys[1]))
    (effect,) = effects_on(plan, "totals")
    assert effect.difference == "type of keys: the order of fields"
    assert any("the keys of 'totals'" in each for each in plan.conflicts)


def test_a_description_without_types_says_that_they_are_undeclared() -> None:
    saved = json.loads(description_to_json(totals(ONE)))
    for sub in saved["subtopologies"]:
        for each in [*sub["steps"], *sub["stores"]]:
            each.pop("value_type", None)
    plan = compare_topologies(description_from_json(json.dumps(saved), "x"), totals(MORE))
    assert plan.undeclared == ("totals", "d3-by-key-repartition")


def test_types_are_declared_to_the_group_and_change_the_fingerprint() -> None:
    one, more = (declare_topology(totals(each)) for each in (ONE, MORE))
    assert one.fingerprint != more.fingerprint
    assert decode_topology(encode_topology(one)) == one


def test_the_leader_of_a_group_refuses_a_version_that_would_lose_fields() -> None:
    runs, joins = (
        decode_topology(encode_topology(declare_topology(totals(each)))) for each in (ONE, MORE)
    )
    (conflict,) = find_conflicts(runs, joins, ("the running version", "the refused one"))
    assert conflict.startswith("the running version leaves out biggest of what the refused one")


def test_members_that_declare_no_types_are_not_refused_for_it() -> None:
    runs, joins = (declare_topology(totals(each)) for each in (ONE, MORE))
    silent = replace(
        runs, subtopologies={n: replace(s, types={}) for n, s in runs.subtopologies.items()}
    )
    assert find_conflicts(silent, joins, ("one", "other")) == []
