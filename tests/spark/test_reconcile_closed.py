"""Test that a missing result of a closed window names the inputs of that window."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from streams import App, serdes, windows
from streams.spark import read_cut, reconcile
from tests.brokers import Broker
from tests.conformance.calls import create_topic
from tests.conformance.wire import Client
from tests.spark.one_store import One
from tests.spark.store_rows import START_MS, TEXT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STEP_MS = 1_000
LOST_MS = START_MS + 3 * STEP_MS
"""The start of the window whose results the application loses."""


def write_closed_windows(app: App, topic: str, *, loses_window: bool) -> App:
    """Add steps that write the counts of closed windows, by window and by key alone."""
    results = (
        app.stream(topic, **TEXT)
        .group_by_key()
        .windowed_by(windows.tumbling(STEP_MS, grace=0))
        .count(store="counts", emit="on_close")
        .to_stream()
        .filter(lambda window, _: not loses_window or window.start_ms != LOST_MS)
    )
    results.to(f"{topic}-by-window")
    results.map(
        lambda window, count: (window.key, count), key=serdes.string, value=serdes.int64
    ).to(f"{topic}-by-key")
    return app


def test_a_missing_result_of_a_closed_window_names_the_inputs_of_its_window(
    spark: SparkSession, broker: Broker, unique: Callable[[str], str], tmp_path: Path
) -> None:
    one = One(broker, unique("closing"), tmp_path / "state")
    by_window, by_key = f"{one.topic}-by-window", f"{one.topic}-by-key"
    with Client(one.servers) as client:
        for topic in (by_window, by_key):
            create_topic(client, topic, partitions=1)
    write_closed_windows(one.app, one.topic, loses_window=True)
    # Twelve windows with two records of the key each, and a record that closes them.
    records = [("a", "x", step * STEP_MS + at) for step in range(12) for at in (0, 500)]
    with one.app.start():
        one.feed([*records, ("b", "x", 100 * STEP_MS)])
    cut = read_cut(one.app)
    mended = App(
        one.app.application_id, bootstrap_servers=one.servers, state_dir=tmp_path / "state"
    )
    write_closed_windows(mended, one.topic, loses_window=False)

    with reconcile(spark, mended, cut=cut) as report:
        rows = {row.account: row for row in report.off.collect()}
        assert {(name, row.verdict, row.key) for name, row in rows.items()} == {
            (by_window, "missing", "a"),
            (by_key, "missing", "a"),
        }, report.summary()
        for row in rows.values():
            named = [(at.topic, at.partition, at.offset) for at in row.offsets]
            assert named == [(one.topic, 0, 6), (one.topic, 0, 7)]
            assert row.inputs == 2
        assert rows[by_window].window_start.timestamp() * 1_000 == LOST_MS
