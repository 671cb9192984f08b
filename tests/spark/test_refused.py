"""Test that what can't be checked is refused and named.

So nothing agrees by not being looked at, and nothing differs that only nobody can know any more.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from streams import App, serdes
from streams.errors import ConfigError
from streams.spark import read_cut, reconcile
from streams.spark.reconciliation.comparing import RowVerdict
from streams.spark.reconciliation.inputs import Inputs
from tests.brokers import Broker
from tests.changelog_offsets import account_for_state
from tests.conformance.calls import create_topic
from tests.conformance.wire import Client
from tests.processes import HANG_LIMIT_S, wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.sampled(1, by="test")


class Two:
    """Represents two counts and a copy, where one count's store has the name of its topic.

    The copy is one of its input; the other count is that of a compacted topic.
    """

    def __init__(self, servers: str, name: str, state: Path) -> None:
        names = (f"{name}-{each}" for each in ("read", "same", "copied", "rows"))
        self.read, self.same, self.copied, self.rows = names
        with Client(servers) as client:
            for topic in (self.read, self.same, self.copied):
                create_topic(client, topic)
            create_topic(client, self.rows, configs={"cleanup.policy": "compact"})
        self.app = App(name, bootstrap_servers=servers, state_dir=state, commit_interval_ms=20)
        text = serdes.string
        stream = self.app.stream(self.read, key=text, value=text)
        stream.group_by_key().count(store=self.same).to_stream().to(self.same)
        stream.to(self.copied)
        rows = self.app.stream(self.rows, key=text, value=text)
        rows.group_by_key().count(store="of_rows", name="counted")
        self.changelog = f"{name}-{self.same}-changelog"
        self._producer = Producer({"bootstrap.servers": servers})
        self._fed = 0

    def run(self) -> None:
        for key in "aab":
            self.write(self.read, key)
            self.write(self.rows, key)
        self._fed += 6
        with self.app.start():
            wait_until(self._is_drained, what="all to be counted")

    def write(self, topic: str, key: str, value: bytes = b"x") -> None:
        self._producer.produce(topic, value, key)
        assert self._producer.flush(HANG_LIMIT_S) == 0

    def _is_drained(self) -> bool:
        try:
            cut = read_cut(self.app)
        except ConfigError:  # nothing was committed yet
            return False
        return cut.ends is not None and sum(cut.offsets.values()) == self._fed


@pytest.fixture
def two(broker: Broker, unique: Callable[[str], str], tmp_path: Path) -> Two:
    made = Two(broker.bootstrap_servers, unique("reconciled"), tmp_path / "state")
    made.run()
    return made


def test_what_is_not_there_any_more_is_refused_and_two_of_one_name_are_two_accounts(
    spark: SparkSession, two: Two
) -> None:
    """Refuse what is gone, and keep two accounts of one name apart.

    The store has a record that isn't the application's, and the first records of the copy were
    deleted.
    """
    two.write(two.changelog, "strange", serdes.int64.serialize(9))
    account_for_state(two.app.config.bootstrap_servers, two.app.topology())
    two.run()
    admin = AdminClient({"bootstrap.servers": two.app.config.bootstrap_servers})
    for deleted in admin.delete_records([TopicPartition(two.copied, 0, 2)]).values():
        deleted.result(HANG_LIMIT_S)

    as_topic = f"{two.same} (table in a topic)"
    with reconcile(spark, two.app) as report:
        assert report.accounts.keys() == {two.same, as_topic}
        assert not report.accounts[two.same].balanced
        assert [row.key for row in report.off.collect()] == ["strange"]
        assert report.accounts[as_topic].balanced
        whys = {each.name: each.why for each in report.refused}
        assert whys.keys() == {two.copied, two.rows, "of_rows"}
        assert f"{two.copied}[0] below offset 2 are gone" in whys[two.copied]
        assert "with DeleteRecords: there is no retention (retention.ms=-1)" in whys[two.copied]
        assert "compacted" in whys[two.rows]
        assert two.rows in whys["of_rows"]
        assert report.count(RowVerdict.UNEXPECTED) == 1
        assert "1 record off, 2 accounts not checked" in report.summary()


def test_what_was_asked_for_and_not_checked_is_no_success(spark: SparkSession, two: Two) -> None:
    with reconcile(spark, two.app) as report:
        assert (report.balanced, report.is_off) == (False, False)
        assert report.unchecked == ("of_rows",)
    with reconcile(spark, two.app, allow_unchecked=["of_rows"]) as report:
        assert report.balanced, report.summary()
    with reconcile(spark, two.app, accounts=[two.copied, "of_rows"]) as report:
        assert report.accounts[two.copied].balanced
        assert (report.balanced, report.is_off) == (False, False)
        assert report.unchecked == ("of_rows",)
        assert "NOT checked as asked (of_rows)" in report.summary()

    def expected(inputs: Inputs) -> dict[str, DataFrame]:
        read = inputs[two.read].select("key", "value")
        return {two.copied: read, two.same: read.selectExpr("key", "1L AS value")}

    with reconcile(spark, two.app, expected=expected) as report:
        assert report.accounts.keys() == {two.copied}
        whys = {each.name: each.why for each in report.refused}
        assert "'a' more than once" in whys[two.same]
        assert report.unchecked == (two.same,)
    two.app.configure(None, auto_offset_reset="latest")
    with pytest.raises(ConfigError, match="not known where the application began"):
        reconcile(spark, two.app)
