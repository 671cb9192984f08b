"""Test which rights an application needs, resource by resource, as exact tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streams import App, serdes
from streams.runtime.access.acls import Acl, derive_acls, find_topic_choosers
from streams.runtime.access.resource_names import is_cut_group
from streams.runtime.threads.producers import TaskProducers
from streams.spark.acls import derive_reader_acls
from streams.spark.cuts.application_topics import list_app_topics
from streams.testing.simulated_host import SimulatedHost

TEXT: dict[str, Any] = {"key": serdes.string, "value": serdes.string}


def by_resource(acls: list[Acl]) -> dict[str, str]:
    """Return the operations by resource, where a name that ends with * is a prefix."""
    found: dict[str, list[str]] = {}
    for acl in acls:
        mark = "*" if acl.pattern == "prefixed" else ""
        found.setdefault(f"{acl.resource_type} {acl.name}{mark}", []).append(acl.operation)
    return {resource: " ".join(operations) for resource, operations in found.items()}


def rights_of(app: App, **how: Any) -> dict[str, str]:
    return by_resource(derive_acls(app.topology(), app.config, **how))


def map_only(**settings: Any) -> App:
    app = App("a", **settings)
    app.stream("in", **TEXT).map_values(str.upper).to("out", **TEXT)
    return app


def count(**settings: Any) -> App:
    app = App("a", **settings)
    grouped = app.stream("in", **TEXT).group_by_key()
    grouped.count(store="counts").to_stream().to("out")
    return app


def count_of_other_key(**settings: Any) -> App:
    app = App("a", **settings)
    grouped = app.stream("in", **TEXT).group_by(lambda _, v: v, key=serdes.string)
    grouped.count(store="counts").to_stream().to("out")
    return app


def global_table(**settings: Any) -> App:
    app = App("a", **settings)
    names = app.global_table("names", **TEXT)
    named = app.stream("in", **TEXT).join(names, lambda v, name: name, key=lambda k, v: v)
    named.to("out", **TEXT)
    return app


def foreign_key_join(**settings: Any) -> App:
    app = App("a", **settings)
    orders = app.table("orders", store="orders", **TEXT)
    customers = app.table("customers", store="customers", **TEXT)
    joined = orders.join(
        customers, lambda o, c: o + c, foreign_key=lambda k, v: v, name="of", value=serdes.string
    )
    joined.to_stream().to("out")
    return app


def table_of_its_own_topic(**settings: Any) -> App:
    app = App("a", **settings)
    app.table("in", store="rows", **TEXT).to_stream().to("out")
    return app


def side_effect_only(**settings: Any) -> App:
    app = App("a", **settings)
    app.stream("in", **TEXT).peek(print)
    return app


INPUT = {"topic in": "Read"}
OUTPUT = {"topic out": "Write"}
GROUP = {"group a": "Read"}
TRANSACTIONS = {"transactional-id a-*": "Write"}
CHANGELOG = "Read Write Create DescribeConfigs AlterConfigs"
REPARTITION = "Read Write Create Delete DescribeConfigs AlterConfigs"
CUTS = {"group a-cut*": "Describe"}
COUNT = {"topic a-counts-changelog": CHANGELOG, **INPUT, **OUTPUT, **GROUP}
COUNT_OF_OTHER_KEY = {"topic a-counts-repartition": REPARTITION, **COUNT, **CUTS}


@pytest.mark.parametrize(
    ("create_app", "settings", "expected"),
    [
        (map_only, {}, INPUT | OUTPUT | GROUP | TRANSACTIONS),
        (count, {}, COUNT | TRANSACTIONS),
        (count_of_other_key, {}, COUNT_OF_OTHER_KEY | TRANSACTIONS),
        (
            global_table,
            {},
            INPUT | OUTPUT | GROUP | TRANSACTIONS | {"topic names": "Read DescribeConfigs"},
        ),
        (
            foreign_key_join,
            {},
            {
                "topic a-of-subscription-registration-topic": REPARTITION,
                "topic a-of-subscription-response-topic": REPARTITION,
                "topic a-of-subscription-store-changelog": CHANGELOG,
                "topic a-customers-changelog": CHANGELOG,
                "topic a-orders-changelog": CHANGELOG,
                "topic customers": "Read",
                "topic orders": "Read",
            }
            | OUTPUT
            | GROUP
            | CUTS
            | TRANSACTIONS,
        ),
        (
            count,
            {"ledger": True},
            COUNT | TRANSACTIONS | {"topic a-ledger": "Write Create DescribeConfigs AlterConfigs"},
        ),
        (
            count,
            {"deserialization_handler": "dead_letter:dead"},
            COUNT | TRANSACTIONS | {"topic dead": "Write"},
        ),
        (count_of_other_key, {"processing_guarantee": "at_least_once"}, COUNT_OF_OTHER_KEY),
        (
            count_of_other_key,
            {"processing_guarantee": "exactly_once"},
            COUNT_OF_OTHER_KEY | {"transactional-id a-task:*": "Write"},
        ),
        (
            table_of_its_own_topic,
            {"topology_optimization": "reuse.ktable.source.topics"},
            {"topic in": "Read DescribeConfigs"} | OUTPUT | GROUP | TRANSACTIONS,
        ),
        (
            side_effect_only,
            {"processing_guarantee": "at_least_once"},
            INPUT | GROUP | {"cluster kafka-cluster": "IdempotentWrite"},
        ),
    ],
)
def test_an_application_needs_exactly_these_rights(
    create_app: Callable[..., App], settings: dict[str, Any], expected: dict[str, str]
) -> None:
    assert rights_of(create_app(**settings)) == expected


@pytest.mark.parametrize(
    ("version", "guarantee", "expected"),
    [
        ((2, 7), "at_least_once", {"cluster kafka-cluster": "IdempotentWrite"}),
        ((2, 8), "at_least_once", {}),
        ((4, 3), "at_least_once", {}),
        ((2, 7), "exactly_once_v2", TRANSACTIONS),
    ],
)
def test_before_2_8_an_idempotent_producer_needs_a_right_on_the_cluster(
    version: tuple[int, ...], guarantee: str, expected: dict[str, str]
) -> None:
    rights = rights_of(map_only(processing_guarantee=guarantee), kafka_version=version)
    assert rights == INPUT | OUTPUT | GROUP | expected


def test_no_right_is_listed_that_another_one_implies() -> None:
    implying = {"Read", "Write", "Delete", "Alter"}
    for create_app in (map_only, count, count_of_other_key, global_table, foreign_key_join):
        for operations in rights_of(create_app(ledger=True)).values():
            assert "Describe" not in operations.split() or not implying & {*operations.split()}


def test_a_topic_with_two_purposes_has_the_rights_of_both() -> None:
    app = App("a")
    app.stream("in", **TEXT).filter(lambda k, v: v != "").to("in", **TEXT)
    (read, write, *_) = derive_acls(app.topology(), app.config)
    assert (read.name, read.operation, read.purposes) == ("in", "Read", ("input",))
    assert (write.name, write.operation, write.purposes) == ("in", "Write", ("output",))


def test_topics_that_functions_choose_have_to_be_named() -> None:
    app = App("a", processing_handler=lambda context: "skip")
    app.stream("in", **TEXT).to(lambda record: record.value, name="route", **TEXT)
    expected = ["step 'route'", "the processing handler"]
    assert find_topic_choosers(app.topology(), app.config) == expected
    assert rights_of(app) == INPUT | GROUP | TRANSACTIONS
    named = {"topic one": "Write", "topic more-*": "Write"}
    chosen_topics = ("one", "more-*")
    assert rights_of(app, chosen_topics=chosen_topics) == INPUT | GROUP | TRANSACTIONS | named
    assert rights_of(app, chosen_topics=("*",))["topic *"] == "Write"


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "exactly_once"])
def test_the_prefix_is_that_of_the_transactional_ids_in_use(guarantee: str) -> None:
    app = count(processing_guarantee=guarantee)
    created: list[str] = []

    def create_producer(name: str, require_wanted: Any = None) -> Any:
        created.append(name)
        return name

    producers = TaskProducers(
        create_producer,
        guarantee=guarantee,
        application_id="a",
        thread_id="a-0d9c-0",
        is_member=lambda: True,
        host=SimulatedHost(0),
        creation_timeout_ms=1_000,
    )
    producers.try_prepare_producer("0_0")
    (prefix,) = (
        resource.removeprefix("transactional-id ").removesuffix("*")
        for resource in rights_of(app)
        if resource.startswith("transactional-id")
    )
    assert created[0].startswith(prefix)
    assert created != [prefix]


def test_the_prefix_of_cut_groups_covers_each_group_that_the_purge_spares() -> None:
    app = count_of_other_key()
    prefixes = [r.split(" ", 1)[1] for r in rights_of(app) if r.startswith("group") and "*" in r]
    assert prefixes == ["a-cut*"]
    for group in ("a-cut", "a-cut-monday"):
        assert is_cut_group(group, "a")
        assert group.startswith(prefixes[0].removesuffix("*"))


def test_spark_reads_all_topics_of_an_application_and_writes_none() -> None:
    app = count_of_other_key(ledger=True, processing_handler="dead_letter:dead")
    app.global_table("rates", store="rates", key=serdes.string, value=serdes.string)
    rights = by_resource(derive_reader_acls(app.topology(), app.config))
    read = "Read DescribeConfigs"
    assert rights == {
        "topic a-counts-changelog": read,
        "topic a-counts-repartition": read,
        "topic a-ledger": "Read",
        "topic dead": read,
        "topic in": read,
        "topic out": read,
        "topic rates": read,
        "group a": "Describe",
        "group millrace-spark": "Describe",
    }
    listed = list_app_topics(app)
    topics = {r.removeprefix("topic ") for r in rights if r.startswith("topic ")} - {
        "a-ledger",
        "rates",
    }
    changelogs = {each.changelog for each in listed.store_changelogs.values()}
    assert topics == listed.sources | (listed.outputs or set()) | changelogs
