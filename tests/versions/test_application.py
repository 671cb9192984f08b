"""Test one application on a node of each version of Kafka; a test goes on where the last ended.

A test is a row of docs/versions.md. Where a version lacks something, it says what there is instead.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from streams.membership.kafka_release import estimate_release
from streams.spark import read_cut
from tests.conformance.wire import Client
from tests.integration.cluster import Topics, Worker
from tests.integration.pattern_load import PatternLoad, let_topics_come_and_go
from tests.processes import wait_until
from tests.sampling import draw_seed
from tests.versions.application import build
from tests.versions.nodes import has_streams_groups, is_ledger_served, parse_release
from tests.versions.shop import Shop

pytestmark = pytest.mark.sampled(1, by="version")


@pytest.mark.feature("the release is told by API versions")
def test_the_release_of_a_node_is_told(shop: Shop) -> None:
    with Client(shop.servers, complete=True) as client:
        api_versions = {key: each[-1] for key, each in client.advertised().items()}
    assert estimate_release(api_versions) == parse_release(shop.version)


@pytest.mark.feature("exactly once, with workers killed by `kill -9`")
def test_each_order_is_priced_once_though_workers_are_killed(shop: Shop) -> None:
    """Check joins behind a repartition topic with a table and a global table, and sums."""
    shop.order(300)
    shop.start("one")
    shop.start("two")
    for name in ("one", "two", "one"):
        before = shop.read_priced().total()
        shop.order(300)
        wait_until(
            lambda before=before: shop.read_priced().total() > before,  # type: ignore[misc]
            what=lambda: f"nothing is priced: {shop.workers_tail()[-3_000:]}",
        )
        shop.workers[name].kill()
        shop.start(name)
    shop.wait_for_all()


@pytest.mark.feature("a warning of KAFKA-17507 at the start")
def test_a_start_warns_where_offsets_may_be_lost(shop: Shop, record_property: Any) -> None:
    is_warned = "KAFKA-17507" in shop.workers["one"].log_path.read_text()
    assert is_warned == (parse_release(shop.version) < (4, 0))
    record_property("cell", "yes" if is_warned else "not needed")


@pytest.mark.feature("standby tasks, and a rebalance")
def test_a_standby_takes_over_from_a_worker_that_is_lost(shop: Shop) -> None:
    wait_until(
        lambda: sum(len(each["standby"]) for each in shop.describe_group()["members"]) >= 3,
        what=lambda: f"standby tasks: {shop.describe_group()}",
    )
    shop.workers["two"].kill()
    shop.order(200)
    shop.wait_for_all()
    shop.start("two")
    wait_until(
        lambda: min(_count_tasks(shop), default=0) > 0 and len(_count_tasks(shop)) == 2,
        what=lambda: f"tasks for both: {shop.describe_group()}",
    )
    shop.order(200)
    shop.wait_for_all()


def _count_tasks(shop: Shop) -> list[int]:
    return [len(each["active"]) for each in shop.describe_group()["members"]]


@pytest.mark.feature("topics of a pattern that appear and vanish, with workers killed")
def test_topics_of_a_pattern_come_and_go_while_workers_are_killed(
    shop: Shop, tmp_path: Path
) -> None:
    seed = draw_seed("topics of a pattern")
    print(f"{seed=}")
    topics = Topics(shop.servers, f"pattern-{shop.version.replace('.', '-')}")
    workers = [
        Worker(
            topics,
            tmp_path / str(number),
            kind="pattern",
            guarantee="exactly_once_v2",
            session_timeout_ms=10_000,
        )
        for number in range(2)
    ]
    try:
        let_topics_come_and_go(PatternLoad(topics), workers, Random(seed))
    finally:
        for worker in workers:
            worker.kill()
            worker.close()


@pytest.mark.feature("`group list`, `group describe`, `topics`, `plan`, `changelog dump`")
def test_commands_that_every_release_serves(shop: Shop) -> None:
    app = "tests.versions.application:app"
    for command in (
        ("group", "list"),
        ("group", "describe", shop.names.application),
        ("topics", "list"),
        ("topics", "describe", shop.names.orders),
        ("plan", app),
        ("changelog", "dump", app, "owed"),
    ):
        done = shop.run_there(*command)
        assert done.returncode == 0, (command, done.stdout, done.stderr)


@pytest.mark.feature("`txn list`")
def test_transactions_are_listed_or_the_command_says_why_not(
    shop: Shop, record_property: Any
) -> None:
    listed = shop.run_there("txn", "list", "--all", "--json")
    of_topic = shop.run_there("txn", "list", "--topic", shop.names.priced, "--json")
    if parse_release(shop.version) >= (3, 0):
        assert (listed.returncode, of_topic.returncode) == (0, 0), (listed.stderr, of_topic.stderr)
        ids = [json.loads(line)["transactional_id"] for line in listed.stdout.splitlines()]
        assert any(each.startswith(shop.names.application) for each in ids)
        return
    for done in (listed, of_topic):
        assert done.returncode == 2
        assert "doesn't serve ListTransactions, which Kafka has from 3.0 on" in done.stderr
    record_property("cell", "refused")


@pytest.mark.feature("the ledger")
def test_a_ledger_is_kept_or_refused_at_the_start(shop: Shop, record_property: Any) -> None:
    if is_ledger_served(shop.version):
        done = shop.run_there("topics", "describe", f"{shop.names.application}-ledger")
        assert done.returncode == 0, done.stderr
        return
    done = shop.run("run", "tests.versions.application:app", "--set", "ledger=true")
    assert done.returncode == 2
    assert "ledger=True needs Kafka 3.0 or newer" in done.stderr
    record_property("cell", "refused")


@pytest.mark.feature('`group_protocol="streams"`, with workers killed by `kill -9`')
def test_a_streams_group_prices_each_order_once_or_is_refused_at_the_start(
    shop: Shop, tmp_path: Path, record_property: Any
) -> None:
    """Run another application on the node, whose tasks the broker assigns."""
    if not has_streams_groups(shop.version):
        done = shop.run("run", "tests.versions.application:app", group_protocol="streams")
        assert done.returncode == 2, done.stderr
        release = ".".join(map(str, parse_release(shop.version)))
        assert "group_protocol='streams' is not possible here" in done.stderr
        assert "StreamsGroupHeartbeat, which Kafka has from 4.2 on" in done.stderr
        assert f"it is of Kafka {release}. Set group_protocol='classic'" in done.stderr
        record_property("cell", "refused")
        return
    other = Shop(shop.version, tmp_path, node=shop.node, stem="streams")
    other.settings["MILLRACE_GROUP_PROTOCOL"] = "streams"
    try:
        other.open()
        other.order(300)
        for name in ("one", "two"):
            other.start(name)
        other.wait_for_all()
        assert other.describe_group()["protocol"] == "streams"
        for name in ("one", "two"):
            other.order(300)
            other.workers[name].kill()
            other.start(name)
            other.wait_for_all()
    finally:
        other.end_workers()


@pytest.mark.feature('`group_protocol="auto"` turns an empty group into a streams group')
def test_auto_turns_an_empty_group_into_a_streams_group_where_its_offsets_survive(
    shop: Shop, record_property: Any
) -> None:
    """Go on with the group of the tests before: 4.2.0 would lose its offsets (KAFKA-20254)."""
    for worker in shop.workers.values():
        assert worker.leave() == 0, worker.log_tail()
    for worker in shop.workers.values():
        worker.change_settings({"MILLRACE_GROUP_PROTOCOL": "auto"})
        worker.start()
    shop.order(200)
    shop.wait_for_all()
    if parse_release(shop.version) >= (4, 3):
        assert shop.describe_group()["protocol"] == "streams"
        return
    assert shop.describe_group()["protocol"] == "classic"
    why = "KAFKA-20254" if has_streams_groups(shop.version) else "doesn't serve StreamsGroup"
    logs = [each.log_path.read_text() for each in shop.workers.values()]
    assert all("group_protocol='auto': classic, since" in log for log in logs)
    assert any(why in log for log in logs), "the second to start may see the first as a member"
    record_property("cell", "stays classic")


@pytest.mark.feature("cut, Spark's reads and `reconcile`")
def test_spark_reads_a_cut_and_reconciles_the_results(shop: Shop, record_property: Any) -> None:
    """Check a topic behind a repartition topic, which only a ledger lets; without one, a store."""
    for worker in shop.workers.values():
        assert worker.leave() == 0, worker.log_tail()
    cut = read_cut(build(shop.names.application, bootstrap_servers=shop.servers))
    read = sum(at for p, at in cut.offsets.items() if p.topic == shop.names.orders)
    assert read >= shop.expected.total()
    with_ledger = is_ledger_served(shop.version)
    repartition = f"{shop.names.application}-by-customer-repartition"
    account = shop.names.priced if with_ledger else repartition
    quick = ("--master", "local[1]", "--spark", "spark.sql.shuffle.partitions=1")
    app = "tests.versions.application:app"
    done = shop.run_there("reconcile", app, "--account", account, *quick, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [(each["account"], each["balanced"]) for each in report["accounts"]] == [(account, True)]
    if not with_ledger:
        record_property("cell", "without a ledger")


@pytest.mark.feature("an input that is deleted and created again is noticed")
def test_an_input_that_is_made_again_ends_the_start(shop: Shop) -> None:
    shop.make_again(shop.names.orders)
    worker = shop.start("one")
    wait_until(lambda: worker.ended is not None, what=lambda: f"an end: {worker.log_tail()}")
    assert worker.ended != 0
    assert "created again" in worker.log_tail()
