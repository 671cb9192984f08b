"""Read as DataFrames the records that an application has read and written by a cut."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark import StorageLevel

from streams.common.topic_partitions import Partition
from streams.errors import ConfigError
from streams.spark.cuts.cut import Cut
from streams.spark.reconciliation.derivation.determinism import COMPACTED_REASON, reads_every_record
from streams.spark.reconciliation.planned_reads import read_as_planned_here
from streams.spark.source.broker_access import BrokerAccess, translate_unanswered_requests
from streams.spark.source.frames import FORMAT, build_topic_read_options, exclude_runs_beyond_cut
from streams.spark.source.removal import explain_removal
from streams.spark.stores.store_options import build_window_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streams.serdes import Serde
    from streams.topology.build import Topology

_PLAIN_SERDES = {"bytes", "string", "int32", "int64", "float64"}
"""Serdes of an application that the data source has under the same name."""
_JSON = "json"
TIMES_AS_NUMBERS = {"times": "ms"}
"""The option of the data source with which it reads the times that no TIMESTAMP can be, too."""
KEPT_OFFSETS_MAX = 1_000_000
"""A topic with more offsets is read again by each account rather than stored by Spark."""
_KEEP_RECORDS = (
    "A reconciliation needs a topic from its first record on: keep them all (retention.ms=-1, "
    "retention.bytes=-1), or allow what depends on them to go unchecked (allow_unchecked)"
)


class TopicRecords:
    """Reads the records that topics had as of the consistent cut `cut`.

    `access`: how the brokers are reached, from the driver and from executors.
    """

    def __init__(self, spark: SparkSession, access: BrokerAccess, cut: Cut) -> None:
        self.spark = spark
        self.access = access
        self.cut = cut
        self.admin = access.create_admin()
        self._earliest_offsets: dict[str, dict[Partition, int]] = {}
        self._kept_frames: dict[str, DataFrame] = {}
        self._other_frames: list[DataFrame] = []

    def read_topic(self, topic: str, **options: str) -> DataFrame:
        """Read a topic's committed records that are in the consistent cut.

        The columns are `key`, `value`, `topic`, `partition`, `offset`, `timestamp`; keys and values
        are bytes, or decoded as `options` of the data source say. Of a topic that the application
        reads these are the records that it has read; of one that it writes, those that it has
        written.

        Raises: ConfigError if the cut doesn't know the end of the topic.
        """
        return self._load_topic(self._build_options_up_to_cut(topic) | options, plans_now=False)

    def _build_options_up_to_cut(self, topic: str) -> dict[str, str]:
        """Return the data source's options for a topic's records that are in the cut."""
        begins = self.fetch_earliest_offsets(topic)
        until = {
            p: max(begins[p], at) for p, at in require_end_offsets_at_cut(topic, self.cut).items()
        }
        return build_topic_read_options(self.access, topic, begins, until)

    def _load_topic(self, options: Mapping[str, str], *, plans_now: bool) -> DataFrame:
        """Read a topic without the runs that are not in the cut.

        `plans_now`: the read is planned at once, and not by Spark when it is run, which would find
        what has been removed until then.
        """
        if plans_now:
            found = read_as_planned_here(self.spark, options)
        else:
            found = self.spark.read.format(FORMAT).options(**options).load()
        return exclude_runs_beyond_cut(found, self.cut)

    def persist_topic(self, topic: str) -> DataFrame:
        """Return `read_topic(topic)` as bytes, which Spark stores when it is first read.

        Timestamps are in ms since 1970. Several accounts come of one topic. A topic of many offsets
        is read each time instead.
        """
        if topic not in self._kept_frames:
            begins = self.fetch_earliest_offsets(topic)
            ends = require_end_offsets_at_cut(topic, self.cut)
            is_kept = sum(ends[p] - begins[p] for p in ends) <= KEPT_OFFSETS_MAX
            options = self._build_options_up_to_cut(topic) | TIMES_AS_NUMBERS
            frame = self._load_topic(options, plans_now=is_kept)
            if is_kept:
                frame = frame.persist(StorageLevel.MEMORY_AND_DISK)
            self._kept_frames[topic] = frame
        return self._kept_frames[topic]

    def persist_frame(self, frame: DataFrame) -> DataFrame:
        """Return a DataFrame that Spark stores already, and release it with the topics."""
        self._other_frames.append(frame)
        return frame

    def unpersist(self) -> None:
        """Release the topics, and other DataFrames, that Spark stores."""
        for frame in (*self._kept_frames.values(), *self._other_frames):
            frame.unpersist()

    def read_written_up_to_cut(
        self,
        topic: str,
        first_offsets: Mapping[Partition, int] | None = None,
        *,
        plans_now: bool = False,
    ) -> DataFrame:
        """Read as bytes what the application wrote to a topic up to the consistent cut.

        Timestamps are in ms since 1970. The records begin at `first_offsets`; partitions that are
        not in it from their beginning. `plans_now`, for what is stored at once: the read is planned
        by this call.

        Raises: ConfigError if the cut doesn't know the ends of topics.
        """
        cut, first_offsets = self.cut, first_offsets or {}
        if cut.ends is None:
            raise ConfigError(explain_unknown_end(topic, cut))
        begins = self.fetch_earliest_offsets(topic)
        until = {p: max(begins[p], at) for p, at in cut.ends.items() if p.topic == topic}
        begins = {p: min(max(at, first_offsets.get(p, 0)), until[p]) for p, at in begins.items()}
        options = build_topic_read_options(self.access, topic, begins, until) | TIMES_AS_NUMBERS
        return self._load_topic(options, plans_now=plans_now)

    def fetch_earliest_offsets(self, topic: str) -> dict[Partition, int]:
        """Return the first offset of each partition of `topic` that can still be read."""
        if topic not in self._earliest_offsets:
            with translate_unanswered_requests("where topics begin can't be asked"):
                self._earliest_offsets[topic] = self.admin.fetch_earliest_offsets(
                    list(require_end_offsets_at_cut(topic, self.cut))
                )
        return self._earliest_offsets[topic]

    def explain_removal(self, topic: str) -> str | None:
        """Explain which of a topic's first records are gone, and why; None if all are there.

        The text says what removed them and what to do.
        """
        for partition, first in sorted(self.fetch_earliest_offsets(topic).items()):
            if first > 0:
                return f"{explain_removal(self.admin, partition, first)}. {_KEEP_RECORDS}"
        return None

    def is_compacted(self, topic: str) -> bool:
        """Return whether brokers compact `topic`, so that older records of a key may be gone."""
        with translate_unanswered_requests(f"the settings of {topic} can't be asked"):
            return "compact" in self.admin.fetch_topic_settings([topic])[topic]["cleanup.policy"]


class Inputs(Mapping[str, "DataFrame"]):
    """Provides the inputs up to the consistent cut, by name, to the user's `expected` function.

    `inputs["lines"]` has the columns `key, value, topic, partition, offset, timestamp`, decoded as
    the application's serdes say: text, numbers and bytes as they are; JSON as its text (see
    `decoded` for columns); what has another serde as bytes. With one input topic `inputs` is also
    that DataFrame: `inputs.groupBy("key")`.
    """

    def __init__(self, topology: Topology, records: TopicRecords) -> None:
        self._records = records
        self._frames: dict[str, DataFrame] = {}
        self._serdes: dict[str, tuple[Serde[Any], Serde[Any]]] = {
            topic: (source.key, source.value)
            for sub in topology.subtopologies
            for topic, source in sub.sources.items()
            if topic in topology.input_topics
        }
        self._streams = {
            topic
            for sub in topology.subtopologies
            for topic in sub.sources
            if reads_every_record(sub, topic)
        }

    def __getitem__(self, topic: str) -> DataFrame:
        if topic not in self._serdes and len(self._serdes) == 1:
            # `inputs` stands for its only DataFrame, and what is asked for is a column of it.
            column: Any = self._require_single_input()[topic]
            return column  # type: ignore[no-any-return]
        if topic not in self._frames:  # columns belong to one DataFrame: return the same one
            self._frames[topic] = self.decoded(topic)
        return self._frames[topic]

    def __iter__(self) -> Iterator[str]:
        return iter(self._serdes)

    def __len__(self) -> int:
        return len(self._serdes)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._require_single_input(), name)

    def decoded(
        self, topic: str, *, key_schema: str | None = None, value_schema: str | None = None
    ) -> DataFrame:
        """Return the DataFrame of an input topic whose JSON is decoded with the given schemas.

        `key_schema` and `value_schema` are Spark schemas (DDL) of what is JSON. A record that can't
        be read ends the query.

        Raises: ConfigError for a topic that is none of the inputs, or of which the beginning is
        gone, or which is compacted and read as a stream.
        """
        if topic not in self._serdes:
            raise ConfigError(
                f"{topic!r} is no input of the application: it reads {', '.join(self._serdes)}"
            )
        if lost := self._records.explain_removal(topic):
            raise ConfigError(f"the answer can't be recomputed from its beginning: {lost}")
        if topic in self._streams and self._records.is_compacted(topic):
            raise ConfigError(f"{topic!r} {COMPACTED_REASON}")
        options = {"mode": "FAILFAST"}
        key, value = self._serdes[topic]
        options |= _build_decoding_options("key", key, key_schema) | _build_decoding_options(
            "value", value, value_schema
        )
        return self._records.read_topic(topic, **options)

    def _require_single_input(self) -> DataFrame:
        """Return the DataFrame of the only input. Raises ConfigError if there are more."""
        if len(self._serdes) != 1:
            raise ConfigError(
                f"the application reads {', '.join(self._serdes)}: say which is meant, as "
                f"inputs[{next(iter(self._serdes), '')!r}]"
            )
        return self[next(iter(self._serdes))]


def _build_decoding_options(field: str, serde: Serde[Any], schema: str | None) -> dict[str, str]:
    """Return the options by which the data source decodes a key or a value."""
    if schema is not None:
        return {field: _JSON, f"{field}_schema": schema}
    if field == "key" and serde.inner is not None:
        return _build_decoding_options(field, serde.inner, None) | build_window_options(serde)
    if serde.name in _PLAIN_SERDES:
        return {field: serde.name}
    return {field: "string" if serde.name.startswith(_JSON) else "bytes"}


def require_end_offsets_at_cut(topic: str, cut: Cut) -> dict[Partition, int]:
    """Return the first offset of each partition of `topic` that is not in the consistent cut.

    Raises: ConfigError if the cut doesn't know it.
    """
    ends = {p: at for p, at in cut.offsets.items() if p.topic == topic}
    if ends:
        return ends
    if cut.ends is None:
        raise ConfigError(explain_unknown_end(topic, cut))
    ends = {p: at for p, at in cut.ends.items() if p.topic == topic}
    if not ends:
        raise ConfigError(
            f"the cut of {cut.application_id!r} says nothing of topic {topic!r}: the application "
            "neither reads nor writes it"
        )
    return ends


def explain_unknown_end(topic: str, cut: Cut) -> str:
    """Explain why an output's end at the consistent cut is not known, and what to do."""
    return (
        f"which records of {topic!r} are in the cut can't be told: {cut.application_id!r} went on "
        "while the cut was taken, and keeps no ledger. Run it with ledger=True, or let it come to "
        "the end of its inputs"
    )
