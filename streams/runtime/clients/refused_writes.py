"""Write records one by one after a broker has refused one, to find which record it was.

A producer sends records in batches, and a broker that refuses one of them refuses the batch. In a
transaction librdkafka then says no more than the topic's partition. So the transaction is rolled
back (WriteRefused), and processed again with each record written and acknowledged alone, so that a
refusal meets the step that writes the record. In normal operation nothing is kept for a record.

    state       a broker refuses                what happens
    BATCHES     a batch                         WriteRefused: rolled back, ONE BY ONE
    ONE BY ONE  a record, at least once         the production handler is asked at once
    ONE BY ONE  a record, in a transaction,     WriteRefused: rolled back; when the record is to be
                which has failed with it        written again, the handler is asked and nothing sent
    ONE BY ONE  a changelog record              the thread ends, with store, key and reason

    ONE BY ONE  nobody: the topic's settings    the production handler is asked at once, and
                exclude the record              nothing sent

    from        to          when
    ONE BY ONE  BATCHES     at a commit, QUIET_MS after the last refusal

The settings of a topic are looked up when it has refused a record, and again after QUIET_MS.

A record is known again by the record that was processed, the topic and its content. If its content
differs each time, as with a random part, the thread ends after the third time, with both named. An
error that is of no record, as UNKNOWN_SERVER_ERROR, is taken for one of the record that meets it
three times in a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, cast

from confluent_kafka import KafkaError, KafkaException

from state.early_serialization import ChangeLimit
from state.shown_values import quote_value
from streams.errors import OutcomeUnknown, StreamsError, TaskMigrated, WriteRefused
from streams.runtime.clients.delivered_offsets import add_offset_tracking
from streams.runtime.clients.error_codes import ErrorKind, find_error_kind
from streams.runtime.clients.errors import (
    ChangeTooLarge,
    RecordRefused,
    WriteNotAllowed,
    check_authorized,
    explain_refusal,
    translate_client_error,
)
from streams.runtime.clients.interfaces import ProducerClient
from streams.runtime.clients.topic_limits import (
    MESSAGE_BYTES_MAX_DEFAULT,
    FetchTopicLimits,
    TopicLimits,
    find_change_limit,
    find_no_limits,
)

QUIET_MS = 10_000
"""How long records are written one by one after the last refusal, by the wall clock."""
_FAILURES_MAX = 3
"""After so many failures in a row at one place any error of a broker is one of that record."""


class WritingContext(Protocol):
    """Provides the record or callback that is being processed, to attribute a refused write."""

    message: Any

    @property
    def fails_production(self) -> bool: ...

    @property
    def now_ms(self) -> Callable[[], int]: ...

    def describe_record_origin(self) -> str: ...

    def request_commit(self) -> None: ...


class WritePlace(NamedTuple):
    """Names a write by what was processed, the topic, and its number among the writes of that.

    Where no record is processed, `number` is the hash of the key: a punctuation is not repeated.
    """

    origin: str
    topic: str
    number: int


class RefusedWrites:
    """Remembers for one thread which writes brokers have refused, and whether to search for one.

    `fetch_limits` looks up what the settings of a topic exclude, `producer_bytes_max` is the
    producers' `message.max.bytes`.
    """

    def __init__(
        self,
        fetch_limits: FetchTopicLimits = find_no_limits,
        producer_bytes_max: int = MESSAGE_BYTES_MAX_DEFAULT,
    ) -> None:
        self._fetch_limits = fetch_limits
        self._producer_bytes_max = producer_bytes_max
        self._limits: dict[str, tuple[int, TopicLimits | None]] = {}
        """The limits of the topics that have refused a record, each with the time it was asked."""
        self.is_searching = False
        """Whether records are written one by one."""
        self._refusals: dict[tuple[str, int], KafkaError] = {}
        """The error of each refused write, by what was processed and the hash of its content."""
        self._failures: Counter[tuple[WritePlace, bool]] = Counter()
        """How often a write at each place was refused (True), or has failed otherwise (False)."""
        self._has_refusal = False
        self._quiet_since_ms: int | None = None

    def start_search(self, *, by_refusal: bool) -> None:
        """Write one by one from the next transaction on; `by_refusal`: a broker has refused one."""
        self.is_searching = True
        self._has_refusal = self._has_refusal or by_refusal
        self._quiet_since_ms = None

    def end_search_if_quiet(self, now_ms: int) -> None:
        """Write in batches again if no write was refused for a while, or none at all."""
        if not self.is_searching:
            return
        if self._quiet_since_ms is None:
            self._quiet_since_ms = now_ms
        if not self._has_refusal or now_ms - self._quiet_since_ms >= QUIET_MS:
            self.is_searching = self._has_refusal = False
            self._refusals.clear()
            self._failures.clear()
            self._limits.clear()

    def note_refusal(self, place: WritePlace, content: int, error: KafkaError) -> None:
        """Remember that brokers refused this write, by its origin and content."""
        self._refusals[place.origin, content] = error
        self._has_refusal, self._quiet_since_ms = True, None

    def find_refusal(self, place: WritePlace, content: int) -> KafkaError | None:
        """Return the error with which a write was refused; None if it was not."""
        return self._refusals.get((place.origin, content))

    def learn_limits(self, topic: str, now_ms: int) -> None:
        """Look up the limits of a topic that has refused a record, unless they are known."""
        if topic not in self._limits:
            self._limits[topic] = now_ms, self._fetch_limits(topic)

    def find_change_limit(self, changelog: str, size: int) -> ChangeLimit | None:
        """Return the limit of a changelog that has refused a change of `size` bytes, or None."""
        limits = self._fetch_limits(changelog)
        return find_change_limit(changelog, size, limits, self._producer_bytes_max)

    def find_certain_refusal(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp_ms: int,
        now_ms: Callable[[], int],
    ) -> KafkaError | None:
        """Return the error with which a topic's brokers are certain to refuse a record, or None."""
        known = self._limits.get(topic)
        if known is None:
            return None
        learned_at_ms, limits = known
        time_ms = now_ms()
        if not 0 <= time_ms - learned_at_ms < QUIET_MS:
            del self._limits[topic]  # the next refusal is a broker's again
            return None
        error = None if limits is None else limits.find_refusal(key, value, timestamp_ms, time_ms)
        if error is not None:
            self._has_refusal, self._quiet_since_ms = True, None
        return error

    def count_failure(self, place: WritePlace, *, is_refusal: bool) -> int:
        """Count one more failure of a write at a place, and return how many there were."""
        self._failures[place, is_refusal] += 1
        return self._failures[place, is_refusal]

    def wrap_produce_if_searching(
        self, context: WritingContext, producer: ProducerClient
    ) -> Callable[..., None]:
        """Return a task's `produce`, or in a search for a refused record one that awaits each."""
        if not self.is_searching:
            return producer.produce
        return _SingleWriter(self, context, producer).write

    def wrap_changelog_producer_if_searching(self, producer: ProducerClient) -> ProducerClient:
        """Return the producer for changelogs, or in a search one that writes record by record."""
        if not self.is_searching:
            return producer
        return cast(ProducerClient, _ChangelogWriter(producer))


class _SingleWriter:
    """Writes the records of one task one by one."""

    def __init__(
        self, search: RefusedWrites, context: WritingContext, producer: ProducerClient
    ) -> None:
        self._search, self._context, self._producer = search, context, producer
        self._produce = producer.produce
        self._origin, self._number = "", 0

    def write(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        partition: int = -1,
        callback: Any = None,
        on_delivery: Any = None,
        timestamp_ms: int = 0,
        headers: Any = None,
    ) -> None:
        """Write a record, with the arguments of `produce`, and wait until it is acknowledged.

        Raises: RecordRefused if a broker refuses it, or has refused it; WriteRefused if the
        transaction is to be repeated for that.
        """
        if not self._search.is_searching:
            arguments = (topic, value, key, partition, callback, on_delivery, timestamp_ms, headers)
            self._produce(*arguments)
            return
        now_ms = self._context.now_ms
        if (
            error := self._search.find_certain_refusal(topic, key, value, timestamp_ms, now_ms)
        ) is not None:
            raise RecordRefused(error, explain_refusal(error, key, value, timestamp_ms))
        place = self._number_write_of_record(topic, key)
        # The time of what a punctuation writes is that of the punctuation.
        time_ms = None if self._context.message is None else timestamp_ms
        content = hash((topic, key, value, time_ms))
        error = self._search.find_refusal(place, content)
        if error is None:
            error = self._send_and_find_refusal(
                place, (value, key, partition), (timestamp_ms, headers)
            )
            if error is None:
                return
            self._search.note_refusal(place, content, error)
            if self._producer.transactional and not self._context.fails_production:
                self._count_refusal(place)
                self._search.learn_limits(topic, now_ms())
                raise WriteRefused(
                    f"what {place.origin} writes to topic {topic!r} is refused: {error.str()} "
                    f"({error.name()})",
                    is_found=True,
                )
        self._context.request_commit()
        check_authorized(error, "Write", topic)
        raise RecordRefused(error, explain_refusal(error, key, value, timestamp_ms))

    def _count_refusal(self, place: WritePlace) -> None:
        """Count that brokers refused the write with this origin and place in its record.

        Raises StreamsError if repetitions write another content there each time.
        """
        if self._search.count_failure(place, is_refusal=True) >= _FAILURES_MAX:
            raise StreamsError(
                f"what {place.origin} writes to topic {place.topic!r} was refused {_FAILURES_MAX} "
                "times in a row, each time with another content"
            )

    def _number_write_of_record(self, topic: str, key: bytes | None) -> WritePlace:
        origin = self._context.describe_record_origin()
        if self._context.message is None:
            return WritePlace(origin, topic, hash(key))
        if origin != self._origin:
            self._origin, self._number = origin, 0
        self._number += 1
        return WritePlace(origin, topic, self._number)

    def _send_and_find_refusal(
        self, place: WritePlace, record: tuple[Any, ...], rest: tuple[Any, ...]
    ) -> KafkaError | None:
        """Send a record and return the error with which a broker refuses it; None if it does not.

        Raises: OutcomeUnknown with origin and topic, TaskMigrated or StreamsError for other errors.
        """
        what = f"what {place.origin} writes to topic {place.topic!r}"
        error = _send_and_find_refusal(self._producer, what, place.topic, record, rest)
        if error is None or find_error_kind(error.code()) in (ErrorKind.RECORD, ErrorKind.TOPIC):
            return error
        cause = self._producer.find_transaction_error()
        if isinstance(cause, TaskMigrated):
            raise cause
        if isinstance(cause, WriteNotAllowed):
            # The transaction has not taken the topic, so the record was never sent.
            return KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
        if (
            find_error_kind(error.code()) is ErrorKind.WORKER
            and self._search.count_failure(place, is_refusal=False) >= _FAILURES_MAX
        ):
            return error
        raise translate_client_error(KafkaException(error), what)


class _ChangelogWriter:
    """Writes changelog records one by one, and ends the thread with the one that is refused."""

    def __init__(self, producer: ProducerClient) -> None:
        self._producer = producer
        self.delivered_offsets = producer.delivered_offsets
        self.wait_for_queue_room = producer.wait_for_queue_room

    def produce(
        self, topic: str, value: Any, key: Any, partition: int, report: Any, *rest: Any
    ) -> None:
        """Write a changelog record. Raises StreamsError, with topic and key, if it is refused."""
        what = (
            f"changelog {topic}[{partition}]: the value of key {quote_value(key)}, of "
            f"{len(value or b'')} bytes, can't be written"
        )
        error = _send_and_find_refusal(
            self._producer, what, topic, (value, key, partition), rest[1:], report
        )
        if error is not None:
            check_authorized(error, "Write", topic)
            if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
                raise ChangeTooLarge(topic, len(key or b"") + len(value or b""), what)
            raise translate_client_error(KafkaException(error), what)


def _send_and_find_refusal(
    producer: ProducerClient,
    what: str,
    topic: str,
    record: tuple[Any, ...],
    rest: tuple[Any, ...],
    report: Callable[[Any, Any], None] | None = None,
) -> KafkaError | None:
    """Send a record alone, and return the error that its delivery report has.

    Raises: OutcomeUnknown, with `what` is written, if there is none in time.
    """
    errors: list[KafkaError] = []

    def note_delivery(error: KafkaError | None, message: Any) -> None:
        if error is not None:
            errors.append(error)
        if report is not None:
            report(error, message)

    on_delivery = (
        note_delivery
        if report is not None
        else add_offset_tracking(note_delivery, producer.delivered_offsets)
    )
    producer.produce(topic, *record, on_delivery, None, *rest)
    try:
        producer.flush()
    except OutcomeUnknown as error:
        if not errors:
            raise OutcomeUnknown(f"{what}: {error}") from error
    return errors[0] if errors else None
