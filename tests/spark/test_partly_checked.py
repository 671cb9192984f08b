"""Test an application of which not all can be checked: the rest is counted and no success."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from pyspark.sql import functions as F  # noqa: N812

from streams import App, Store, serdes
from streams.common.topic_partitions import Partition
from streams.errors import ConfigError
from streams.spark import read_cut, reconcile
from streams.spark.reconciliation.inputs import Inputs
from streams.spark.source.broker_access import BrokerAccess
from tests.brokers import Broker
from tests.conformance.calls import create_topic
from tests.conformance.wire import Client
from tests.processes import HANG_LIMIT_S, wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.sampled(2, by="test")

TEXT = serdes.string
RETENTION_MS = 604_800_000
CLICKS = 3


class Enriched:
    """Counts clicks, joins them with a table, counts the results, and has an unlogged store."""

    def __init__(self, servers: str, name: str, state: Path) -> None:
        names = (f"{name}-{each}" for each in ("clicks", "people", "joined"))
        self.clicks, self.people, self.joined = names
        self.repartition = f"{name}-by_town-repartition"
        kept = {"retention.ms": str(RETENTION_MS)}
        with Client(servers) as client:
            for topic in (self.clicks, self.people, self.joined):
                create_topic(client, topic, configs=kept if topic == self.clicks else None)
        self.app = App(
            name,
            bootstrap_servers=servers,
            state_dir=state,
            commit_interval_ms=20,
            repartition_purge_interval_ms=3_600_000,
        )
        clicks = self.app.stream(self.clicks, key=TEXT, value=TEXT)
        people = self.app.table(self.people, key=TEXT, value=TEXT, store="people")
        clicks.group_by_key().count(store="counts")
        clicks.group_by_key().count(store=Store.in_memory("scratch", logged=False))
        joined = clicks.join(people, lambda _, town: town)
        joined.to(self.joined, key=TEXT, value=TEXT)
        joined.group_by(lambda _, town: town, key=TEXT, value=TEXT).count(store="by_town")
        self._producer = Producer({"bootstrap.servers": servers})

    def run(self) -> None:
        """Run until all is processed."""
        for person in "abc"[:CLICKS]:
            self.write(self.people, person, "town")
            self.write(self.clicks, person, "x")
        with self.app.start():
            wait_until(self._is_drained, what="all clicks to be processed")

    def write(self, topic: str, key: str, value: str) -> None:
        self._producer.produce(topic, value, key)
        assert self._producer.flush(HANG_LIMIT_S) == 0

    def _is_drained(self) -> bool:
        try:
            cut = read_cut(self.app)
        except ConfigError:  # nothing was committed yet
            return False
        read = [cut.offsets.get(Partition(topic, 0), 0) for topic in (self.clicks, self.people)]
        if cut.ends is None or read != [CLICKS, CLICKS]:
            return False
        left = (
            cut.ends[Partition(self.repartition, 0)] - cut.offsets[Partition(self.repartition, 0)]
        )
        return left <= 1  # a marker


def counted(topic: str) -> Callable[[Inputs], DataFrame]:
    """Return a function that counts how often each key is in a topic."""

    def answer(inputs: Inputs) -> DataFrame:
        counts: DataFrame = inputs[topic].groupBy("key").agg(F.count("*").alias("value"))
        return counts

    return answer


@pytest.fixture
def enriched(broker: Broker, unique: Callable[[str], str], tmp_path: Path) -> Enriched:
    made = Enriched(broker.bootstrap_servers, unique("partly"), tmp_path / "state")
    made.run()
    return made


def test_what_goes_unchecked_is_told_first_and_is_no_success_unless_it_is_allowed(
    spark: SparkSession, enriched: Enriched, tmp_path: Path
) -> None:
    """Check a record of another producer that lies in a topic that can't be checked."""
    enriched.write(enriched.joined, "a", "town")
    missed = {enriched.joined, enriched.repartition, "scratch"}
    with reconcile(spark, enriched.app) as report:
        assert report.accounts.keys() == {"counts", "people", "by_town"}
        assert not report.is_off
        assert not report.balanced
        assert set(report.unchecked) == missed
        covered = report.coverage
        assert (covered.accounts_checked, covered.accounts_asked) == (3, 6)
        assert covered.accounts_total == 6
        counts = {each.name: each.record_count for each in covered.unchecked}
        assert counts["scratch"] is None
        assert counts[enriched.joined]
        assert counts[enriched.repartition]
        assert 0 < covered.records_checked < covered.records_asked
        whys = {each.name: each.why for each in covered.unchecked}
        assert whys[enriched.joined].startswith("it comes of what is not checked: KSTREAM-JOIN-")
        assert whys[enriched.repartition] == whys[enriched.joined]
        first, verdict, *_ = report.summary().splitlines()
        assert first.startswith("Checked 3 of 6 accounts (50 %) with ")
        assert "NOT checked as asked" in verdict
        report.to_html(tmp_path / "report.html")
        html = (tmp_path / "report.html").read_text()
        assert html.index(first) < html.index("NOT checked as asked")
        assert "<title>" + enriched.app.application_id + ": not checked as asked" in html
        assert f"? {enriched.joined}" in html

    with reconcile(spark, enriched.app, allow_unchecked=[*missed - {enriched.joined}]) as report:
        assert (report.balanced, report.unchecked) == (False, (enriched.joined,))
    with reconcile(spark, enriched.app, allow_unchecked=missed) as report:
        assert report.balanced, report.summary()
        assert (report.unchecked, set(report.coverage.allowed)) == ((), missed)
        assert "are as expected where they were checked" in report.summary()
        assert f"not checked, as allowed: {enriched.joined}: " in report.summary()
    with pytest.raises(ConfigError, match=r"'scrach'.*the nearest is 'scratch'"):
        reconcile(spark, enriched.app, allow_unchecked=["scrach"])


def test_only_what_is_asked_for_has_to_be_checked(spark: SparkSession, enriched: Enriched) -> None:
    with reconcile(spark, enriched.app, accounts=["counts"]) as report:
        assert report.balanced, report.summary()
        assert report.coverage.accounts_percent == 100
        assert "5 more accounts of the application were not asked for" in report.summary()


def test_a_topic_cut_off_at_its_beginning_is_named_with_its_retention(
    spark: SparkSession, enriched: Enriched
) -> None:
    admin = BrokerAccess(enriched.app.config.bootstrap_servers).create_admin()
    admin.delete_records({Partition(enriched.clicks, 0): 2})
    gone = (
        f"the records of {enriched.clicks}[0] below offset 2 are gone, removed by retention "
        f"(retention.ms={RETENTION_MS}, which is 7 d) or with DeleteRecords"
    )
    with reconcile(spark, enriched.app, allow_unchecked=["counts"]) as report:
        whys = {each.name: each.why for each in report.refused}
        assert gone in whys[enriched.clicks]
        assert "keep them all (retention.ms=-1" in whys[enriched.clicks]
        assert report.unchecked
        assert "counts" not in report.unchecked

    with pytest.raises(ConfigError) as raised:
        reconcile(spark, enriched.app, expected=counted(enriched.clicks), accounts=["counts"])
    assert gone in str(raised.value)


def test_what_is_removed_meanwhile_keeps_its_account_alone_from_being_checked(
    spark: SparkSession, enriched: Enriched
) -> None:
    admin = BrokerAccess(enriched.app.config.bootstrap_servers).create_admin()

    def expected(inputs: Inputs) -> dict[str, DataFrame]:
        answers = {
            "counts": counted(enriched.clicks)(inputs),
            "people": inputs[enriched.people].select("key", "value"),
        }
        admin.delete_records({Partition(enriched.clicks, 0): CLICKS})
        return answers

    with reconcile(spark, enriched.app, expected=expected) as report:
        assert report.accounts.keys() == {"people"}
        assert (report.is_off, report.unchecked) == (False, ("counts",))
        (why,) = (each.why for each in report.refused)
        assert (
            f"the records of {enriched.clicks}[0] below offset {CLICKS} are gone, removed by "
            f"retention (retention.ms={RETENTION_MS}"
        ) in why
