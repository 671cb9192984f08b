"""Test that each input begins where its own policy says, else where the settings say."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from streams import App, TopologyError, serdes
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import ConfigError, StreamsError
from streams.runtime.offsets.offset_reset import OffsetResetter
from streams.runtime.offsets.resetter_creation import create_offset_resetter
from streams.settings.offset_reset import OffsetResetPolicy, ResetStrategy
from streams.topology.initial_policies import find_initial_policies
from tests.unit.streams.runtime.fakes import Clock, FakeAdmin, Script
from tests.unit.streams.runtime.kafka import Kafka

TEXT: dict[str, Any] = {"key": serdes.string, "value": serdes.string}
TOPICS = ("first", "last", "default")
FIRST, LAST, DEFAULT = (Partition(topic, 0) for topic in TOPICS)


def make_app(**settings: Any) -> App:
    app = App("a", **settings)
    app.stream("first", **TEXT, offset_reset="earliest").to("out")
    app.table("last", **TEXT, offset_reset="latest").to_stream().to("out")
    app.stream("default", **TEXT).to("out")
    return app


def resetting(app: App) -> OffsetResetter:
    """Return a resetter of topics with offsets 10 to 20, each of which is its timestamp."""
    kafka = Kafka(dict.fromkeys(TOPICS, 1))
    for topic in TOPICS:
        kafka.load(Partition(topic, 0), *[("k", "v")] * 20)
        kafka.logs[Partition(topic, 0)].start_offset = 10
    return create_offset_resetter(app.topology(), app.config, FakeAdmin(kafka, Script()), Clock())


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, 10),
        ({"auto_offset_reset": "latest"}, 20),
        ({"start_at": 15}, 15),
        ({"start_at": 15, "auto_offset_reset": "none"}, 15),
        ({"start_at": 99}, 20),
        ({"start_at": "1970-01-01T00:00:00.013+00:00"}, 13),
        ({"start_at": datetime(1970, 1, 1, 0, 0, 0, 14_000, UTC)}, 14),
    ],
)
def test_each_input_begins_where_its_policy_or_the_default_says(
    settings: dict[str, Any], expected: int
) -> None:
    offsets = resetting(make_app(**settings)).choose_start_offsets([FIRST, LAST, DEFAULT])
    assert offsets == {FIRST: 10, LAST: 20, DEFAULT: expected}


def test_only_inputs_that_might_begin_elsewhere_are_committed_first() -> None:
    resetter = resetting(make_app())
    assert resetter.list_unsettled([FIRST, LAST, DEFAULT]) == [LAST]
    assert resetter.list_partitions_of_same_topics([FIRST, DEFAULT]) == []
    assert resetting(make_app(start_at=1)).list_unsettled([FIRST, DEFAULT]) == [DEFAULT]


def test_a_source_may_stop_the_thread_while_others_begin() -> None:
    app = App("a")
    app.stream("first", **TEXT, offset_reset="none").to("out")
    app.stream("default", **TEXT).to("out")
    resetter = resetting(app)
    assert resetter.choose_start_offsets([DEFAULT]) == {DEFAULT: 10}
    said = r"nothing is committed for first\[0\], and offset_reset=none of its source: "
    with pytest.raises(StreamsError, match=said):
        resetter.choose_start_offsets([FIRST, DEFAULT])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"auto_offset_reset": "latest"}, "auto_offset_reset=latest"),
        ({"start_at": 15}, "start_at=15"),
    ],
)
def test_what_says_where_an_input_begins_is_named(
    settings: dict[str, Any], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    resetter = resetting(make_app(**settings))
    with caplog.at_level(logging.INFO):
        resetter.choose_start_offsets([LAST, DEFAULT])
    logged = {line.split()[4].rstrip(":"): line for line in caplog.messages}
    assert logged["last[0]"].endswith("(offset_reset=latest of its source)")
    assert logged["default[0]"].endswith(f"({said})")
    resetter.note_committed([(p, OffsetAndMetadata(20, "")) for p in (LAST, DEFAULT)])
    for partition, policy in ((LAST, "offset_reset=latest of its source"), (DEFAULT, said)):
        with pytest.raises(StreamsError, match=f"a task begins as {policy} says"):
            resetter.choose_start_offsets([partition])


@pytest.mark.parametrize(
    ("given", "duration_ms"),
    [(timedelta(hours=1), 3_600_000), ("by_duration:PT1H", 3_600_000)],
)
def test_a_duration_is_a_timedelta_or_text(given: Any, duration_ms: int) -> None:
    app = App("a")
    app.stream("first", **TEXT, offset_reset=given).to("out")
    policy = find_initial_policies(app.topology(), app.config).find_policy("first")
    assert policy == OffsetResetPolicy(ResetStrategy.BY_DURATION, duration_ms)


@pytest.mark.parametrize("given", ["fail", timedelta(seconds=-1), 7])
def test_a_wrong_policy_is_refused_by_the_step(given: Any) -> None:
    with pytest.raises(TopologyError, match="step 'KSTREAM-SOURCE-0000000000': offset_reset: "):
        App("a").stream("first", **TEXT, offset_reset=given)


@pytest.mark.parametrize("given", ["yesterday", -1, True])
def test_a_wrong_start_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match="start_at"):
        App("a", start_at=given)


def test_one_topic_has_one_policy() -> None:
    app = make_app()
    with pytest.raises(TopologyError, match="another timestamp_extractor or offset_reset"):
        app.stream("first", **TEXT)
