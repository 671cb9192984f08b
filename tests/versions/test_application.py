"""Test one application on a node of each version of Kafka; a test goes on where the last ended.

A test is a row of docs/versions.md. Where a version lacks something, it says what there is instead.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from streams.membership.kafka_release import estimate_release
from streams.spark import read_cut
from tests.conformance.wire import Client
from tests.processes import wait_until
from tests.versions.application import build
from tests.versions.nodes import is_ledger_served, parse_release
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
