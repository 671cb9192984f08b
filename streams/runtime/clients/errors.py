"""Translate a client's error to the error that selects the recovery.

    recovery          errors                                        why
    TaskMigrated      fenced; unknown member; unknown id mapping;   another has, or will get, the
                      sequences out of order                        tasks or the transactional id
    GenerationOver    ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS     as TaskMigrated, unless a join
                                                                    is under way
    StreamsError      not allowed, too large, no such topic, ...    trying again changes nothing
    TopicRefused      a topic that may not be used                  as StreamsError; which topic, a
                                                                    look at the rights tells
    OutcomeUnknown    all others: time-outs, lost answers,          it may have taken effect, or may
                      transactions that must be aborted             the next time

A client that can't authenticate is among the others: a provider of tokens may be away for a moment.
Whether brokers refuse the credentials is found out by a connection of our own
(`streams.processes.security_watch`), which ends the thread then.

What each code is about is in `streams.runtime.clients.error_codes`.
librdkafka has retried before what it can retry (kafka-rules, section 1). A transaction with an
error that it calls abortable is not aborted: the producer is replaced, and the new epoch aborts it.
Source: RecordCollectorImpl and StreamsProducer of Kafka Streams, which take time-outs for corrupted
tasks instead.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from streams.errors import (
    AuthorizationError,
    ConfigError,
    GenerationOver,
    OutcomeUnknown,
    StreamsError,
    TaskMigrated,
    WriteRefused,
)
from streams.membership.authorization import REFUSED_RESOURCES
from streams.runtime.clients.error_codes import (
    KAFKA_ERRORS,
    LIBRDKAFKA_ERRORS,
    ErrorKind,
    find_error_kind,
)

log = logging.getLogger("streams.runtime.clients")
librdkafka_log = logging.getLogger("streams.runtime.clients.librdkafka")
"""The logger of librdkafka's own lines: each client logs each broker that comes and goes."""
_RAISED_FACILITIES = {"TXNERR", "FATAL", "ADDOFFSETS", "ADDPARTS", "TXNOFFSETS", "ENDTXN"}
"""The kinds of librdkafka's lines about transactions, each of which its next call raises."""
_METADATA_FACILITY = "METADATA"
TOPIC_ID_DEBUG_CONTEXT = "metadata"
"""The value of `debug` with which librdkafka logs the ids of topics: a line for each partition each
time that it fetches metadata, and none for records."""
_TOPIC_ID_LINE = re.compile(r"Topic (\S+) changed id from \S+ to (\S+)$")
_TOPIC_LINE = re.compile(r"  Topic (\S+) with \d+ partitions(?:: (.+))?$")
_UNKNOWN_TOPIC_TEXT = "Broker: Unknown topic or partition"

FENCED_ERRORS = {
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.INVALID_PRODUCER_ID_MAPPING,
    KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER,
    KafkaError.UNKNOWN_PRODUCER_ID,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.FENCED_INSTANCE_ID,
}
_GENERATION_ERRORS = {KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS}
UNKNOWN_TOPIC_ERRORS = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
}
OUT_OF_RANGE_ERRORS = {
    KafkaError._AUTO_OFFSET_RESET,  # librdkafka's, with `auto.offset.reset=error`
    KafkaError._LOG_TRUNCATION,
    KafkaError.OFFSET_OUT_OF_RANGE,
}
# librdkafka's codes of brokers' errors are Kafka's.
_REFUSED_RESOURCES: Mapping[int, str] = {
    **REFUSED_RESOURCES,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "cluster",
}
PERMANENT_ERRORS = frozenset(
    code
    for code, (_, kind) in {**KAFKA_ERRORS, **LIBRDKAFKA_ERRORS}.items()
    if kind in (ErrorKind.TOPIC, ErrorKind.FATAL)
    or (kind is ErrorKind.RECORD and code in KAFKA_ERRORS and code != KafkaError.INVALID_MSG)
)
"""Errors that the same request meets again. A record that arrived damaged is fetched again."""
RETRIABLE_ERRORS = frozenset(
    {
        *(code for code, (_, kind) in KAFKA_ERRORS.items() if kind is ErrorKind.RETRIABLE),
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
    }
)
"""Errors that pass by themselves, as Kafka's RetriableException. `KafkaError.retriable()` can't be
used: librdkafka 2.16 sets it for a producer's transactions only."""


class TopicRefused(StreamsError):
    """Signals that the right to a topic is missing, and librdkafka does not tell which one."""


class WriteNotAllowed(TopicRefused):
    """Signals that the right to write a topic is missing, which a producer does not name.

    Records that are written one by one tell which topic it is, and which record chose it.
    """


class RecordRefused(KafkaException):  # type: ignore[misc]
    """Signals that a broker has refused a record which was written alone; `reason` says why."""

    is_always_shown = True
    """Its text is made of the broker's words and of sizes and times, and shows no value."""

    def __init__(self, error: KafkaError, reason: str) -> None:
        super().__init__(error)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class ChangeTooLarge(StreamsError):
    """Signals that a changelog takes no change of a store of `size` bytes, key and value."""

    def __init__(self, topic: str, size: int, message: str) -> None:
        super().__init__(message)
        self.topic, self.size = topic, size


class NotReady(OutcomeUnknown):
    """Signals that brokers can't answer at this moment; the same request may succeed soon."""


def translate_client_error(error: KafkaException, action: str) -> Exception:
    """Translate a client's error to the error that selects the recovery.

    An error that isn't known to be final becomes OutcomeUnknown.
    """
    cause: KafkaError = error.args[0]
    what = f"{action}: {cause.str()} ({cause.name()})"
    if cause.code() in _GENERATION_ERRORS:
        return GenerationOver(what)
    if cause.code() in FENCED_ERRORS:
        return TaskMigrated(what)
    if cause.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        return TopicRefused(what)
    if cause.code() in PERMANENT_ERRORS:
        return StreamsError(what)
    return (NotReady if cause.code() in RETRIABLE_ERRORS else OutcomeUnknown)(what)


def find_write_refusal(error: KafkaError, action: str) -> WriteRefused | WriteNotAllowed | None:
    """Return the error for a record that a broker refuses, or its topic, which no repetition helps.

    None for any other error, also for a missing topic, for which a producer waits.
    """
    code, what = error.code(), f"{action}: {error.str()} ({error.name()})"
    if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        return WriteNotAllowed(what)
    if code in UNKNOWN_TOPIC_ERRORS:
        return None
    is_refusal = find_error_kind(code) in (ErrorKind.RECORD, ErrorKind.TOPIC)
    return WriteRefused(what) if is_refusal else None


def is_client_error(error: Exception) -> bool:
    """Return whether an error is of confluent-kafka, whose text shows nothing of a record."""
    return isinstance(error, KafkaException)


def is_too_large(error: Exception) -> bool:
    """Return whether a producer refuses a record since it is larger than `message.max.bytes`."""
    return (
        isinstance(error, KafkaException) and error.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    )


def explain_refusal(
    error: KafkaError, key: bytes | None, value: bytes | None, timestamp_ms: int
) -> str:
    """Return why a broker refuses a record, with what of the record its code is about.

    Brokers say more in their answer, which confluent-kafka 2.16 does not hand over.
    """
    about = ""
    match error.code():
        case KafkaError.INVALID_RECORD if key is None:
            about = ": it has no key, which a compacted topic needs (cleanup.policy)"
        case KafkaError.INVALID_TIMESTAMP:
            about = (
                f": its time is {timestamp_ms} ms, further from now than the topic allows "
                "(message.timestamp.before.max.ms, message.timestamp.after.max.ms)"
            )
        case KafkaError.MSG_SIZE_TOO_LARGE | KafkaError.RECORD_LIST_TOO_LARGE:
            about = (
                f": it has {len(key or b'') + len(value or b'')} bytes without its headers "
                "(max.message.bytes of the topic)"
            )
        case KafkaError.UNSUPPORTED_COMPRESSION_TYPE:
            about = ": the topic does not take the compression.type of the producer"
    return f"{error.str()} ({error.name()}){about}"


def check_authorized(error: KafkaError, operation: str, name: str) -> None:
    """Raise AuthorizationError if an error says that the right to an operation is missing.

    `name` is that of the resource that the error is about.
    """
    if error.code() in _REFUSED_RESOURCES:
        raise AuthorizationError(operation, _REFUSED_RESOURCES[error.code()], name) from None


class LibrdkafkaLogger:
    """Logs the lines of one librdkafka client.

    They wait until the client is polled: for a client that nobody polls they would come at its
    close, minutes late and with that time. `is_muted` drops them. `on_error` is called at each
    error of the client's connections. With `TOPIC_ID_DEBUG_CONTEXT` the ids of topics are read from
    the lines.
    """

    def __init__(self, on_error: Callable[[], None] = lambda: None) -> None:
        self._on_error = on_error
        self.is_muted = False
        """Whether further lines are dropped."""
        self._topic_ids: dict[str, str] = {}
        self._seen_topic_ids: dict[str, str] = {}
        self._topics_made_again: set[str] = set()
        self.missing_topics: set[str] = set()
        """The topics that brokers did not have when they were last asked."""

    def pop_seen_topic_ids(self) -> dict[str, str]:
        """Return the ids that topics were seen to have got since the last call, by topic."""
        if not self._seen_topic_ids:
            return self._seen_topic_ids
        seen, self._seen_topic_ids = self._seen_topic_ids, {}
        return seen

    def find_topic_id(self, topic: str) -> str | None:
        """Return the id that a topic was last seen to have; None if none was seen."""
        return self._topic_ids.get(topic)

    def pop_topics_made_again(self) -> set[str]:
        """Return the topics that were seen to get another id since the last call."""
        again, self._topics_made_again = self._topics_made_again, set()
        return again

    def _update_topics_from_log_line(self, line: str) -> None:
        """Note the missing topic or new topic id that a log line of librdkafka names, if any."""
        if found := _TOPIC_ID_LINE.search(line):
            self._note_topic_id(found[1], found[2])
        elif found := _TOPIC_LINE.search(line):
            if found[2] == _UNKNOWN_TOPIC_TEXT:
                self.missing_topics.add(found[1])
            else:
                self.missing_topics.discard(found[1])

    def _note_topic_id(self, topic: str, topic_id: str) -> None:
        if self._topic_ids.get(topic, topic_id) != topic_id:
            self._topics_made_again.add(topic)
        self._topic_ids[topic] = self._seen_topic_ids[topic] = topic_id

    def log(self, level: int, form: str, *what: object) -> None:
        """Log a line, unless they are muted: an error as WARNING, since no line needs a person.

        What can't be mended the next call raises. So a transaction that has failed, or a producer
        that was fenced ("FATAL"), is INFO: its recovery is logged by the thread. A warning of
        librdkafka's is INFO, too.
        """
        if what[:1] == (_METADATA_FACILITY,):
            self._update_topics_from_log_line(str(what[-1]))
        if not self.is_muted:
            is_raised = level < logging.ERROR or not _RAISED_FACILITIES.isdisjoint(what[:1])
            shown = min(level, logging.INFO if is_raised else logging.WARNING)
            librdkafka_log.log(shown, form, *what)

    def log_error(self, error: KafkaError) -> None:
        """Log an error of a client's connection, such as a broker that is away.

        An error that a call meets is raised by that call.
        """
        self.log(logging.INFO, "%s (%s)", error.str(), error.name())
        self._on_error()


def with_topic_ids_logged(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with which a client logs the ids of topics, besides what they have it log."""
    contexts = filter(None, (settings.get("debug"), TOPIC_ID_DEBUG_CONTEXT))
    return {**settings, "debug": ",".join(contexts)}


def create_client(
    client_name: str,
    client_class: Any,
    settings: Mapping[str, Any],
    logger: LibrdkafkaLogger | None = None,
) -> Any:
    """Create a confluent-kafka client of `client_class`.

    Raises: ConfigError for a setting that librdkafka doesn't know or take.
    """
    logger = logger or LibrdkafkaLogger()
    try:
        return client_class({**settings, "error_cb": logger.log_error}, logger=logger)
    except KafkaException as error:
        raise ConfigError(f"{client_name} settings: {error.args[0].str()}") from error
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{client_name} settings: {error}") from error
