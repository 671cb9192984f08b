"""Test what an import of offsets refuses, and what it notes of windows that were emitted."""

from __future__ import annotations

import base64
import itertools
import struct
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from streams import App, Store, serdes, until_time_limit, until_window_closes, windows
from streams.commands.offset_import import OffsetImport, build_metadata_of_emitted_windows
from streams.common.topic_partitions import CommittedOffsets, OffsetAndMetadata, Partition
from streams.errors import ConfigError
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


TEXT: dict[str, Any] = {"key": serdes.string, "value": serdes.string}
Describe = Callable[[App], object]
IN = Partition("in", 0)
JAVA = base64.b64encode(struct.pack(">bq", 2, 5)).decode()
"""Metadata as Kafka Streams commits it."""


class Read:
    """Represents a record of a changelog."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition

    def topic(self) -> str:
        return self._partition.topic

    def partition(self) -> int:
        return self._partition.number

    def offset(self) -> int:
        return 0


class FakeClients:
    """Serves topics of one partition, of which some have a record."""

    def __init__(
        self,
        topics: Collection[str],
        filled: Collection[str],
        counts: Mapping[str, int] | None = None,
        cut: Collection[str] = (),
    ) -> None:
        self.partition_counts = dict.fromkeys(topics, 1) | dict(counts or {})
        self.filled, self.cut = {*filled, *cut}, cut
        self.admin = self
        self.groups: list[str] = []

    def fetch_latest_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        return {each: int(each.topic in self.filled) for each in partitions}

    fetch_last_stable_offsets = fetch_latest_offsets

    def fetch_earliest_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        return {each: int(each.topic in self.cut) for each in partitions}

    def create_reader(self, *, committed_only: bool) -> FakeClients:
        assert committed_only
        return self

    def read_records(
        self, positions: Mapping[Partition, int], ends: Mapping[Partition, int]
    ) -> Iterator[Read]:
        return (Read(each) for each, end in ends.items() if positions[each] < end)

    def list_groups(self) -> list[str]:
        return self.groups

    def fetch_strictest_broker_limit_or_default(self, setting: str, default: int) -> int:
        return default

    def fetch_topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        return {topic: f"id of {topic}" for topic in topics}

    def fetch_topic_settings(self, topics: Collection[str]) -> dict[str, dict[str, str]]:
        return {topic: {"cleanup.policy": "compact,delete"} for topic in topics}

    def close(self) -> None:
        pass


def plan_import(
    describe: Describe,
    *,
    filled: Collection[str] = (),
    more_topics: Collection[str] = (),
    offsets: Mapping[Partition, str] | None = None,
    pending: Collection[Partition] = (),
    counts: Mapping[str, int] | None = None,
    missing: Collection[str] = (),
    cut: Collection[str] = (),
    groups: Sequence[str] = (),
    **settings: Any,
) -> OffsetImport:
    """Plan the import of an application whose topics are there, but for those that are `missing`.

    `filled` have a record each, `cut` have lost theirs, and `counts` are other numbers of
    partitions than one.
    """
    app = App("a", **settings)
    describe(app)
    topology = app.topology()
    topics = {*topology.read_topics, *filled, *more_topics} - {*missing}
    read = [Partition(topic, 0) for topic in topology.source_topics]
    held = dict.fromkeys(read, JAVA) if offsets is None else offsets
    committed = CommittedOffsets(
        {each: OffsetAndMetadata(1, metadata) for each, metadata in held.items()}, list(pending)
    )
    clients: Any = FakeClients(topics, filled, counts, cut)
    clients.groups = [*groups]
    offset_import = OffsetImport(clients, app, committed)
    assert offset_import.plan_offsets()
    return offset_import


def count_words(app: App) -> None:
    app.stream("in", **TEXT).group_by_key().count(store="counts")


def join_streams(app: App, *, is_left: bool = False) -> None:
    left, right = app.stream("in", **TEXT), app.stream("other", **TEXT)
    join = left.left_join if is_left else left.join
    join(right, lambda a, b: a, within=timedelta(seconds=1), name="joined", value=serdes.string)


def emit_on_close(app: App, by: Any) -> None:
    grouped = app.stream("in", **TEXT).group_by_key()
    grouped.windowed_by(by).count(store="closed", emit="on_close")


SECOND = timedelta(seconds=1)
LAYOUTS: dict[str, tuple[Describe, str, str]] = {
    "a versioned table": (
        lambda app: app.table("in", **TEXT, store=Store.versioned("rows", history=SECOND)),
        "a-rows-changelog",
        "store 'rows' can't be taken over, as its changelog also has versions that came too late",
    ),
    "a table that waits for a time limit": (
        lambda app: app.table("in", **TEXT, store="rows").suppress(
            until_time_limit(SECOND), name="late"
        ),
        "a-late-store-changelog",
        "store 'late-store' can't be taken over, as the layout of a buffer store is Millrace's own",
    ),
    "windows that wait for their end": (
        lambda app: (
            app.stream("in", **TEXT)
            .group_by_key()
            .windowed_by(windows.tumbling(SECOND))
            .count(store="counts")
            .suppress(until_window_closes(), name="late")
        ),
        "a-late-store-changelog",
        "store 'late-store' can't be taken over, as the layout of a buffer store is Millrace's own",
    ),
    "sessions that are emitted when they close": (
        lambda app: emit_on_close(app, windows.session(SECOND)),
        "a-closed-changelog",
        "store 'closed' can't be taken over, as which of its windows Kafka Streams has emitted can",
    ),
    "sliding windows that are emitted when they close": (
        lambda app: emit_on_close(app, windows.sliding(SECOND)),
        "a-closed-changelog",
        "store 'closed' can't be taken over, as which of its windows Kafka Streams has emitted can",
    ),
}


@pytest.mark.parametrize("kind", LAYOUTS)
def test_a_store_of_another_layout_is_refused_if_it_has_records(kind: str) -> None:
    describe, changelog, message = LAYOUTS[kind]
    with pytest.raises(ConfigError) as refused:
        plan_import(describe, filled=[changelog])
    assert message in str(refused.value)
    assert f"and {changelog}[0] has records. Let it run empty" in str(refused.value)


@pytest.mark.parametrize("is_left", [False, True])
def test_a_join_of_streams_with_records_is_taken_over(is_left: bool) -> None:
    plan_import(
        lambda app: join_streams(app, is_left=is_left),
        filled=[
            f"a-joined-{'outer-' if is_left and side == 'other' else ''}{side}-join-store-changelog"
            for side in ("this", "other")
        ],
    )


REFUSED: dict[str, tuple[Mapping[str, Any], str]] = {
    "an open transaction": ({"pending": [IN]}, "a transaction is still open on in[0]: try again"),
    "another id": ({"offsets": {}}, "group 'a' has no committed offset: is it the id of"),
    "a tool's offset": (
        {"offsets": {IN: "by hand"}},
        "the offset of in[0] was not committed by Kafka Streams: a tool has set it",
    ),
    "an input that is not read here": (
        {"offsets": {IN: JAVA, Partition("a-words-repartition", 0): JAVA}},
        "of 'a-words-repartition', which this application does not read (it reads in). Give its st",
    ),
    "an input that Java did not read": (
        {"offsets": {Partition("in", 1): JAVA}, "filled": ["in"]},
        "Kafka Streams has committed no offset of in[0], which has records",
    ),
    "a store that is not here": (
        {"more_topics": ["a-KSTREAM-AGGREGATE-STATE-STORE-0000000003-changelog"]},
        "-STATE-STORE-0000000003-changelog', which this application does not use: their state",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_could_not_go_on_is_refused_with_the_value_and_what_to_do(kind: str) -> None:
    arguments, message = REFUSED[kind]
    with pytest.raises(ConfigError) as refused:
        plan_import(count_words, **arguments)
    assert message in str(refused.value)


@pytest.mark.parametrize("kind", LAYOUTS)
def test_a_store_of_another_layout_goes_on_if_it_is_empty(kind: str) -> None:
    describe, _, _ = LAYOUTS[kind]
    assert plan_import(describe)


def test_a_wrapper_around_the_steps_hides_no_windows_that_are_emitted_when_they_close() -> None:
    app = App("a", processor_wrapper=lambda step, create_processor: create_processor)
    emit_on_close(app, windows.session(SECOND))
    held = {IN: OffsetAndMetadata(1, JAVA)}
    topics = app.topology().read_topics
    clients: Any = FakeClients(topics, ["a-closed-changelog"])
    with pytest.raises(ConfigError, match="store 'closed' can't be taken over"):
        OffsetImport(clients, app, CommittedOffsets(held, [])).plan_offsets()


def count_unlogged(app: App) -> None:
    app.stream("in", **TEXT).group_by_key().count(store=Store.persistent("counts", logged=False))


def count_repartitioned(app: App) -> None:
    stream = app.stream("in", **TEXT).repartition(name="words", partitions=4)
    stream.group_by_key().count(store="counts")


def count_minutes(app: App) -> None:
    emit = app.stream("in", **TEXT).group_by_key().windowed_by(WINDOW)
    emit.count(store="minutes")


JAVA_STORE = "a-KSTREAM-AGGREGATE-STATE-STORE-0000000003-changelog"
OTHER_TOPICS: dict[str, tuple[Describe, Mapping[str, Any], tuple[str, ...]]] = {
    "a store that is not logged here": (
        count_unlogged,
        {"more_topics": ["a-counts-changelog"]},
        (
            "the internal topics 'a-counts-changelog', which this application does not use: their",
            "Store 'counts' has logged=False here, and a changelog in Java",
        ),
    ),
    "a store of another name": (
        count_words,
        {"more_topics": [JAVA_STORE], "missing": ["a-counts-changelog"]},
        (
            f"the internal topics '{JAVA_STORE}', which this application does not use",
            "needs the internal topics 'a-counts-changelog' (store 'counts'), which Kafka Streams",
            "Give its stores the names that they have in Java",
        ),
    ),
    "a store that only this application has": (
        count_words,
        {"missing": ["a-counts-changelog"]},
        ("needs the internal topics 'a-counts-changelog'", "one that Java does not have is added"),
    ),
    "an input that does not exist": (
        count_words,
        {"missing": ["in"], "offsets": {IN: JAVA}},
        ("there is no topic 'in', which this application reads",),
    ),
    "other partitions": (
        count_repartitioned,
        {"counts": {"a-words-repartition": 3, "a-counts-changelog": 3}},
        (
            "internal topic 'a-words-repartition' has 3 partitions and this application needs 4",
            "as repartition(partitions=3)",
        ),
    ),
    "windows whose records the clock has removed": (
        count_minutes,
        {"cut": ["a-minutes-changelog"]},
        (
            "changelog a-minutes-changelog[0] of store 'minutes' begins at 1, and",
            "windows that may still be open (those that have started after 1970-01-01T00:00:",
            "Nothing was committed",
            "A window that was removed while it was open begins at nothing",
            "MILLRACE_CHANGELOG_OUT_OF_RANGE=earliest",
            "process records of today, stop it, and import then",
        ),
    ),
}


@pytest.mark.parametrize("kind", OTHER_TOPICS)
def test_state_that_could_not_go_on_is_refused_and_no_reset_is_advised(kind: str) -> None:
    describe, arguments, messages = OTHER_TOPICS[kind]
    with pytest.raises(ConfigError) as refused:
        plan_import(describe, **arguments)
    for message in messages:
        assert message in str(refused.value)
    assert "reset" not in str(refused.value)


def test_windows_that_the_clock_removed_after_they_had_expired_are_no_loss() -> None:
    recent = base64.b64encode(struct.pack(">bq", 2, int(time.time() * 1_000))).decode()
    plan_import(count_minutes, cut=["a-minutes-changelog"], offsets={IN: recent})


def test_topics_of_another_application_whose_id_begins_alike_are_let_be() -> None:
    more = ["a-b-orders-changelog"]
    with pytest.raises(ConfigError, match="a-b-orders-changelog"):
        plan_import(count_words, more_topics=more)
    plan_import(count_words, more_topics=more, groups=["a", "a-b"])


def test_a_loss_that_the_application_accepts_is_told() -> None:
    planned = plan_import(
        count_minutes, cut=["a-minutes-changelog"], changelog_out_of_range="earliest"
    )
    (loss,) = planned.accepted_losses
    assert "begins at 1, and offsets were committed when it stood at 1" in loss


def test_a_changelog_that_is_made_again_meanwhile_is_refused_and_no_reset_is_advised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbers = itertools.count()
    monkeypatch.setattr(
        FakeClients,
        "fetch_topic_ids",
        lambda _, topics: {topic: f"id {next(numbers)} of {topic}" for topic in topics},
    )
    with pytest.raises(ConfigError, match=r"the changelogs of 'counts' have changed") as refused:
        plan_import(count_words, filled=["a-counts-changelog"])
    assert "reset" not in str(refused.value)
