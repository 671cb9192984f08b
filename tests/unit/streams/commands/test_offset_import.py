"""Test what an import of offsets notes of the windows that Kafka Streams has emitted."""

from __future__ import annotations

from datetime import timedelta

import pytest

from streams import App, Store, serdes, windows
from streams.commands.offset_import import build_metadata_of_emitted_windows
from streams.runtime.offsets.kafka_streams_metadata import KafkaStreamsMetadata

WINDOW = windows.tumbling(timedelta(milliseconds=10), grace=timedelta(milliseconds=5))


@pytest.mark.parametrize("closed_ms", [(30, 20), (20, 30), (30,)])
def test_of_several_partitions_the_greatest_time_is_noted(closed_ms: tuple[int, ...]) -> None:
    app = App("a")
    app.stream("in", key=serdes.string, value=serdes.string).group_by_key().windowed_by(
        WINDOW
    ).count(store=Store.persistent("c"), name="count", emit="on_close")
    (subtopology,) = app.topology().subtopologies
    offsets = [KafkaStreamsMetadata(each, {"c": each}) for each in closed_ms]
    offsets.append(KafkaStreamsMetadata(-1))
    assert (
        build_metadata_of_emitted_windows(subtopology, offsets).time_of_step("count")
        == max(closed_ms) + 5
    )
