"""Test that two topologies may run side by side if they share whole sub-topologies, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streams import App, Processor, Store, serdes, windows
from streams.membership.protocol import SubscriptionInfo
from streams.runtime.assigning.topology_versions import admit_versions, find_versions
from streams.topology.compatibility import find_conflicts
from streams.topology.declared import (
    DeclaredTopology,
    declare_topology,
    decode_topology,
    encode_topology,
)
from streams.topology.description import describe_topology

Read = Callable[[str], Any]


def declared(steps: Callable[[Read], object]) -> DeclaredTopology:
    app = App("a")
    steps(lambda topic: app.stream(topic, key=serdes.string, value=serdes.string))
    return declare_topology(describe_topology(app.topology()))


def copies(*topics: str) -> DeclaredTopology:
    return declared(lambda read: [read(topic).to("out") for topic in topics])


def counts(*topics: str, store: str = "of-") -> DeclaredTopology:
    return declared(
        lambda read: [read(t).group_by_key().count(store=f"{store}{t}") for t in topics]
    )


class Using(Processor[str, str, str, str]):
    """Declares the stores that it is given, and does nothing with them."""


def kept(topic: str = "x", **how: Any) -> DeclaredTopology:
    text = {"key": serdes.string, "value": serdes.string}
    store = Store.persistent("s", **{**text, **how})
    return declared(lambda read: read(topic).process(Using, stores=[store]))


def repartitioned(*topics: str, partitions: int | None = None, name: str = "") -> DeclaredTopology:
    names = {"name": name} if name else {}
    return declared(
        lambda read: [read(t).repartition(partitions=partitions, **names).to("o") for t in topics]
    )


def windowed(size_ms: int) -> DeclaredTopology:
    return declared(
        lambda read: (
            read("x").group_by_key().windowed_by(windows.tumbling(size_ms)).count(store="c")
        )
    )


def passed_on(**serde: Any) -> DeclaredTopology:
    return declared(lambda read: read("x").repartition(name="r", **serde).to("o"))


def count_by_value(stream: Any, store: str = "c") -> Any:
    """Count in a store, behind a repartition topic of its name."""
    return stream.group_by(lambda k, v: v, key=serdes.string).count(store=store)


def both_counts(stream: Any) -> None:
    """Count by key in store `of-x`, and by value in store `c`."""
    stream.group_by_key().count(store="of-x")
    count_by_value(stream)


def paired(first: str, second: str) -> DeclaredTopology:
    """Declare a join of `x` with itself or with `y`, each side behind its own repartition topic."""

    def steps(read: Read) -> None:
        streams = {topic: read(topic) for topic in "xy"}
        one = streams[first].repartition(name="one")
        two = streams[second].repartition(name="two")
        one.join(two, lambda a, b: a, within=10, name="j")
        for stream in streams.values():
            stream.to("o")

    return declared(steps)


def joined(within_ms: int) -> DeclaredTopology:
    return declared(
        lambda read: read("x").join(read("y"), lambda a, b: a, within=within_ms, name="j")
    )


SIDE_BY_SIDE = {
    "equal": (counts("x"), counts("x")),
    "swapped": (counts("x", "y"), counts("y", "x")),
    "a step more": (copies("x"), declared(lambda r: r("x").filter(lambda k, v: True).to("out"))),
    "a sub-topology more": (counts("x"), counts("y", "x")),
    "nothing in common": (counts("x"), counts("y")),
    "an output more, by a repartition topic": (copies("x"), repartitioned("x", name="r")),
    "a way round, to the same repartition topic": (
        declared(lambda r: count_by_value(r("x"))),
        declared(lambda r: count_by_value(r("x").repartition(name="r"))),
    ),
    "a group of another topic more": (copies("x"), declared(lambda r: count_by_value(r("y")))),
    "a join's size": (joined(10), joined(20)),
    "a store more": (copies("x"), counts("x")),
    "a group more": (copies("x"), declared(lambda r: count_by_value(r("x")))),
    "a group more, over another repartition topic": (
        repartitioned("x", name="r"),
        declared(lambda r: count_by_value(r("x").repartition(name="r"))),
    ),
    "a store and a sub-topology more": (counts("x"), declared(lambda r: both_counts(r("x")))),
}


@pytest.mark.parametrize("versions", SIDE_BY_SIDE.values(), ids=SIDE_BY_SIDE)
def test_versions_that_share_whole_sub_topologies_run_side_by_side(
    versions: tuple[DeclaredTopology, DeclaredTopology],
) -> None:
    one, other = versions
    assert find_conflicts(one, other, ("old", "new")) == []
    assert find_conflicts(other, one, ("new", "old")) == []


CONFLICTS = {
    "another name": (counts("x"), counts("x", store="by-"), "'of-x' in old, and 'by-x' in new"),
    "one joins": (
        copies("x"),
        declared(lambda read: read("x").merge(read("y")).to("out")),
        "'x' is read alone in old, and together with 'y' in new",
    ),
    "a store elsewhere": (kept(), kept("y"), "'s' is filled from 'x' in old, and from 'y' in new"),
    "another serde": (
        kept(),
        kept(value=serdes.int64),
        "'s' is key-value of string and string, with a changelog in old, and key-value of",
    ),
    "a changelog": (kept(logged=False), kept(), "without a changelog in old"),
    "windows of another size": (
        windowed(60_000),
        windowed(120_000),
        "in windows of 60000 ms, with a changelog in old, and window of",
    ),
    "a repartition topic's key": (
        passed_on(),
        passed_on(key=serdes.json),
        "'a-r-repartition' is string and string in old, and json and string in new",
    ),
    "a repartition topic's value": (
        passed_on(),
        passed_on(value=serdes.json),
        "'a-r-repartition' is string and string in old, and string and json in new",
    ),
    "each has a group more": (
        declared(lambda r: count_by_value(r("x").repartition(name="r"))),
        counts("x"),
        "'x' has the stores nothing in old, and 'of-x' in new",
    ),
    "groups of other names": (
        declared(lambda r: count_by_value(r("x"))),
        declared(lambda r: count_by_value(r("x"), store="d")),
        "'x' leads to 'a-c-repartition' in old, which is read into stores, and not in new",
    ),
    "one side of a join from elsewhere": (
        paired("x", "y"),
        paired("x", "x"),
        "'x' leads to 'a-two-repartition' in new, which is read into stores, and not in old",
    ),
    "other partitions": (
        repartitioned("x", partitions=2, name="r"),
        repartitioned("x", partitions=3, name="r"),
        "repartition topic 'a-r-repartition' has 2 partitions in old and 3 in new",
    ),
    "another's generated topic": (
        repartitioned("x", "y"),
        repartitioned("y", "x"),
        "0000000001-repartition' is fed from 'x' in old, and from 'y' in new: name the step",
    ),
}


@pytest.mark.parametrize(("one", "other", "why"), CONFLICTS.values(), ids=CONFLICTS)
def test_versions_that_share_parts_of_sub_topologies_do_not(
    one: DeclaredTopology, other: DeclaredTopology, why: str
) -> None:
    assert why in "; ".join(find_conflicts(one, other, ("old", "new")))
    assert find_conflicts(other, one, ("new", "old"))


@pytest.mark.parametrize(("one", "other", "why"), CONFLICTS.values(), ids=CONFLICTS)
def test_of_versions_in_conflict_the_one_that_runs_is_admitted_alone(
    one: DeclaredTopology, other: DeclaredTopology, why: str
) -> None:
    """Test that versions in conflict are told apart, and that only the running one is admitted.

    Their fingerprints tell them apart.
    """
    members = {
        "running": SubscriptionInfo(("0_0", "0_1"), topology=one),
        "new": SubscriptionInfo((), topology=other),
    }
    admission = admit_versions(find_versions(members), {"x": 2, "y": 2}, "a")
    assert admission.refusal_reasons.keys() == {"new"}
    told = why.replace("in old", "in the running version").replace("in new", "in the refused one")
    assert told in admission.refusal_reasons["new"]


@pytest.mark.parametrize("declared_", [each for pair in SIDE_BY_SIDE.values() for each in pair])
def test_a_declared_topology_comes_back_from_its_text(declared_: DeclaredTopology) -> None:
    assert decode_topology(encode_topology(declared_)) == declared_


def test_the_fingerprint_is_of_steps_stores_and_their_order() -> None:
    assert counts("x", "y").fingerprint == counts("x", "y").fingerprint
    others = [counts("y", "x"), copies("x", "y"), counts("x"), counts("x", "y", store="by-")]
    assert len({each.fingerprint for each in [counts("x", "y"), *others]}) == 5


@pytest.mark.parametrize("text", ["", "x", "eA==", encode_topology(counts("x"))[:-8]])
def test_what_is_no_declared_topology_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a declared topology"):
        decode_topology(text)


def test_a_topology_of_many_sub_topologies_stays_small() -> None:
    """Test that a large topology is small: one record of at most a megabyte has all members'."""
    many = counts(*(f"orders-of-region-{number}" for number in range(100)))
    assert len(encode_topology(many)) < 5_000
