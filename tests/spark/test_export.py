"""Test that exports hold what the topics hold by offset, each going on from the last."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from streams.common.topic_partitions import Partition
from streams.errors import ConfigError, StreamsError
from streams.ledger import WrittenRange
from streams.spark.exporting.export import ExportRequest, export_application, exported
from streams.spark.exporting.export_directory import read_complete_manifests
from streams.spark.exporting.export_files import RangeWriter, run_in_spark_tasks
from streams.spark.exporting.manifest import ExportEnd, TopicRole
from streams.spark.exporting.verify import verify_exports
from streams.spark.source.broker_access import BrokerAccess
from streams.spark.source.ranges import OffsetRange
from tests.brokers import Broker
from tests.processes import HANG_LIMIT_S, wait_until
from tests.spark.exports import PARTITIONS, changelog, cut_now, output
from tests.spark.topics import Written, mixed

pytestmark = pytest.mark.sampled(5, by="test")

Unique = Callable[[str], str]


class Application:
    """Represents an application that has written a changelog and an output."""

    def __init__(self, servers: str, name: str, records: int = 40) -> None:
        self.servers, self.name = servers, name
        self.access = BrokerAccess(servers)
        self.changelog = mixed(servers, changelog(name), PARTITIONS, records)
        self.output = mixed(servers, output(name), PARTITIONS, 10)
        self.wanted = ExportRequest(outputs=[output(name)])

    def more(self) -> None:
        """Write a transaction into each topic, and one that is aborted."""
        for written in (self.changelog, self.output):
            written.transaction([(0, b"more", b"1"), (1, b"more", None)])
            written.transaction([(0, b"no", b"1")], commit=False)


@pytest.fixture
def application(broker: Broker, unique: Unique) -> Application:
    return Application(broker.bootstrap_servers, unique("exporting"))


def rows(spark: SparkSession, directory: Path, written: Written) -> list[tuple[object, ...]]:
    found = exported(spark, directory, topic=written.topic)
    return sorted(
        tuple(row) for row in found.select("partition", "offset", "key", "value").collect()
    )


def committed(written: Written) -> list[tuple[object, ...]]:
    return sorted((r.partition, r.offset, r.key, r.value) for r in written.committed)


def test_exports_go_on_from_each_other_and_have_each_record_once(
    spark: SparkSession, application: Application, tmp_path: Path
) -> None:
    access, wanted = application.access, application.wanted
    first_cut = cut_now(application.servers, application.name)
    application.more()
    first = export_application(spark, first_cut, access, tmp_path, wanted, records_per_file=20)
    before = rows(spark, tmp_path, application.changelog)
    assert len(before) == len(application.changelog.committed) - 2, "more than the cut has"
    cut = cut_now(application.servers, application.name)
    second = export_application(spark, cut, access, tmp_path, wanted, records_per_file=20)
    assert rows(spark, tmp_path, application.changelog) == committed(application.changelog)
    assert rows(spark, tmp_path, application.output) == committed(application.output)
    assert second.previous == first.sha256
    assert second.records == 4
    assert second.topics[application.changelog.topic].role is TopicRole.CHANGELOG
    assert second.topics[application.output.topic].until is ExportEnd.CUT
    for partition, end in first.end_offsets().items():
        ranges = [f for f in second.files if (f.topic, f.partition) == partition]
        assert min(f.first for f in ranges) == end
    for file in (*first.files, *second.files):
        assert file.records + file.no_records == file.until - file.first <= 20


def test_an_export_without_anything_new_is_one_too(
    spark: SparkSession, application: Application, tmp_path: Path
) -> None:
    cut = cut_now(application.servers, application.name)
    export_application(spark, cut, application.access, tmp_path)
    again = export_application(spark, replace(cut, taken_ms=2), application.access, tmp_path)
    assert (again.number, again.files) == (2, ())
    assert rows(spark, tmp_path, application.changelog) == committed(application.changelog)


def test_a_cut_that_is_older_than_the_last_export_is_refused(
    spark: SparkSession, application: Application, tmp_path: Path
) -> None:
    """Refuse a cut whose ends would be where the next export begins.

    Otherwise records would be there twice.
    """
    old = cut_now(application.servers, application.name)
    application.more()
    cut = cut_now(application.servers, application.name)
    export_application(spark, cut, application.access, tmp_path)
    with pytest.raises(ConfigError, match="the cut is older than the last export"):
        export_application(spark, old, application.access, tmp_path)
    assert len(read_complete_manifests(tmp_path)) == 1


def test_attempts_that_were_given_up_are_no_part_of_an_export(
    spark: SparkSession, application: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check files that each task has written twice.

    One that comes late finds nowhere to write.
    """
    given_up: list[RangeWriter] = []

    def twice(spark: SparkSession, work: RangeWriter, ranges: list[OffsetRange]) -> list[object]:
        given_up.append(work)
        run_in_spark_tasks(spark, work, ranges)
        return list(run_in_spark_tasks(spark, work, ranges))

    monkeypatch.setattr("streams.spark.exporting.export.run_in_spark_tasks", twice)
    cut = cut_now(application.servers, application.name)
    made = export_application(spark, cut, application.access, tmp_path)
    monkeypatch.undo()
    assert verify_exports(spark, tmp_path, application.access).problems == ()
    with pytest.raises(StreamsError, match="can't be written to"):
        given_up[0](made.files[0].offset_range)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["_lock", "export=00000001"]


def test_files_are_as_spark_and_hive_lay_them_out(
    spark: SparkSession, application: Application, tmp_path: Path
) -> None:
    """Check that one who reads the directory without asking us gets what is complete, no more."""
    cut = cut_now(application.servers, application.name)
    export_application(spark, cut, application.access, tmp_path, application.wanted)
    unfinished = tmp_path / "_writing-00000002.0a"
    shutil.copytree(tmp_path / "export=00000001", unfinished)
    found = spark.read.parquet(str(tmp_path))
    written = application.changelog.committed + application.output.committed
    assert found.count() == len(written)
    assert set(found.columns) == {
        *("key", "value", "offset", "timestamp", "headers"),
        *("export", "topic", "partition"),
    }


def test_headers_and_times_are_exported(
    spark: SparkSession, broker: Broker, unique: Unique, tmp_path: Path
) -> None:
    application = Application(broker.bootstrap_servers, unique("headers"), records=1)
    application.changelog.transaction(
        [(1, b"k", b"v")], headers=[("h", b"1"), ("h", None)], timestamp=1_700_000_000_123
    )
    cut = cut_now(application.servers, application.name)
    export_application(spark, cut, application.access, tmp_path)
    row = exported(spark, tmp_path).where("key = X'6B'").first()
    assert row is not None
    assert [tuple(h) for h in row["headers"]] == [("h", b"1"), ("h", None)]
    assert row["timestamp"].timestamp() == 1_700_000_000.123


def test_what_is_not_in_the_cut_is_left_out_below_its_ends(
    spark: SparkSession, application: Application, tmp_path: Path
) -> None:
    """Check an export of a partition that several threads write to.

    A transaction of the cut may end above one that is not in it.
    """
    record = application.output.committed[0]
    cut = replace(
        cut_now(application.servers, application.name),
        beyond={
            Partition(application.output.topic, record.partition): (
                WrittenRange(record.offset, record.offset),
            )
        },
    )
    export_application(spark, cut, application.access, tmp_path, application.wanted)
    whole = exported(spark, tmp_path, topic=application.output.topic, at_cut=False).count()
    assert whole == len(application.output.committed)
    assert exported(spark, tmp_path, topic=application.output.topic).count() == whole - 1


def test_an_output_without_an_end_is_refused_unless_now_will_do(
    spark: SparkSession, application: Application, tmp_path: Path
) -> None:
    cut = cut_now(application.servers, application.name, told=False)
    with pytest.raises(ConfigError, match=r"can't be told: .*ledger=True.*--to-now"):
        export_application(spark, cut, application.access, tmp_path, application.wanted)
    assert read_complete_manifests(tmp_path) == ()
    to_now = replace(application.wanted, to_now=True)
    made = export_application(spark, cut, application.access, tmp_path, to_now)
    assert made.topics[application.output.topic].until is ExportEnd.LAST_STABLE
    assert made.topics[application.changelog.topic].until is ExportEnd.CUT
    assert rows(spark, tmp_path, application.output) == committed(application.output)


def test_what_is_not_there_is_told(
    spark: SparkSession, application: Application, tmp_path: Path
) -> None:
    cut = cut_now(application.servers, application.name)
    for wanted, said in (
        (ExportRequest(stores=["count"]), r"has no store 'count'.*; there are counts"),
        (ExportRequest(outputs=["no-such-topic"]), "there is no topic 'no-such-topic' to export"),
    ):
        with pytest.raises(ConfigError, match=said):
            export_application(spark, cut, application.access, tmp_path, wanted)
    export_application(spark, cut, application.access, tmp_path)
    with pytest.raises(ConfigError, match=r"has exports of 'exporting-.*: export 'another' to"):
        export_application(
            spark, replace(cut, application_id="another"), application.access, tmp_path
        )


def test_a_topic_that_was_made_again_is_not_gone_on_with(
    spark: SparkSession, application: Application, tmp_path: Path
) -> None:
    cut = cut_now(application.servers, application.name)
    export_application(spark, cut, application.access, tmp_path, application.wanted)
    admin = AdminClient({"bootstrap.servers": application.servers})
    name = application.output.topic
    admin.delete_topics([name])[name].result(HANG_LIMIT_S)
    gone = BrokerAccess(application.servers).create_admin()
    wait_until(lambda: name not in gone.fetch_partition_counts(), what="still there")
    mixed(application.servers, name, PARTITIONS, 30)
    cut = cut_now(application.servers, application.name)
    with pytest.raises(ConfigError, match="was deleted and made again since export 1"):
        export_application(spark, cut, application.access, tmp_path, application.wanted)


def test_records_that_were_deleted_before_they_were_exported_are_told(
    spark: SparkSession, application: Application, tmp_path: Path
) -> None:
    cut = cut_now(application.servers, application.name)
    export_application(spark, cut, application.access, tmp_path, application.wanted)
    application.more()
    cut = cut_now(application.servers, application.name)
    assert cut.ends is not None
    partition = Partition(application.output.topic, 0)
    application.access.create_admin().delete_records({partition: cut.ends[partition]})
    application.more()
    cut = cut_now(application.servers, application.name)
    with pytest.raises(ConfigError, match=r"the last export ended at offset \d+, and what is belo"):
        export_application(spark, cut, application.access, tmp_path, application.wanted)


def test_an_export_that_is_killed_leaves_the_one_before_and_the_next_one_heals(
    spark: SparkSession, application: Application, tmp_path: Path
) -> None:
    access, wanted = application.access, application.wanted
    export_application(
        spark, cut_now(application.servers, application.name), access, tmp_path, wanted
    )
    before = rows(spark, tmp_path, application.changelog)
    for number in range(60):
        application.changelog.transaction([(0, b"late", b"%d" % number)])
    command = [sys.executable, "-m", "tests.spark.exports", application.servers]
    with subprocess.Popen(
        [*command, application.name, str(tmp_path)], stdout=subprocess.PIPE
    ) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == b"exporting\n"
        wait_until(
            lambda: len(list(tmp_path.glob("_writing-*/*"))) > 5,
            what="no file of the export has come",
        )
        with pytest.raises(ConfigError, match=f"process {killed.pid} is exporting"):
            export_application(
                spark, cut_now(application.servers, application.name), access, tmp_path
            )
        killed.send_signal(signal.SIGKILL)
        killed.wait(HANG_LIMIT_S)
    assert len(read_complete_manifests(tmp_path)) == 1
    assert rows(spark, tmp_path, application.changelog) == before
    assert spark.read.parquet(str(tmp_path)).where(
        f"topic = '{application.changelog.topic}'"
    ).count() == len(before)
    export_application(
        spark, cut_now(application.servers, application.name), access, tmp_path, wanted
    )
    assert list(tmp_path.glob("_writing-*")) == []
    assert rows(spark, tmp_path, application.changelog) == committed(application.changelog)
