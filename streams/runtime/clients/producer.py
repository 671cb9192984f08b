"""Write with one producer, with or without transactions, and send offsets as a group member."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from streams.common.topic_partitions import OffsetsToCommit
from streams.errors import (
    InputDeleted,
    OutcomeUnknown,
    StreamsError,
    TaskMigrated,
    UnknownTopic,
    WriteRefused,
)
from streams.runtime.clients.bare_errors import call_and_wrap_bare_error, release_error_frames
from streams.runtime.clients.deleted_inputs import (
    explain_deleted_inputs,
    wrap_check_to_raise_if_deleted,
)
from streams.runtime.clients.delivered_offsets import DeliveredOffsets, create_failure_collector
from streams.runtime.clients.errors import (
    RETRIABLE_ERRORS,
    UNKNOWN_TOPIC_ERRORS,
    LibrdkafkaLogger,
    NotReady,
    check_authorized,
    create_client,
    find_write_refusal,
    log,
    translate_client_error,
    with_topic_ids_logged,
)
from streams.runtime.clients.group_metadata import read_group_of_metadata
from streams.runtime.clients.missing_topics import InternalKind, explain_missing_topics
from streams.runtime.clients.moved_coordinator import (
    GetCoordinatorAddress,
    MovedCoordinator,
    find_no_address,
)
from streams.runtime.clients.producer_errors import (
    translate_produce_error,
    translate_transaction_error,
)
from streams.runtime.clients.refusable_call import call_while_usable
from streams.runtime.clients.transaction_age import TransactionAge

if TYPE_CHECKING:
    from streams.membership.producer_identity import ProducerIdentity


_SEND_OFFSETS = "send_offsets_to_transaction"
_BOUNDED_METHODS = {_SEND_OFFSETS, "commit_transaction", "abort_transaction"}
"""Those that librdkafka 2.16 may not return from in time, once all brokers were away."""
_WAITING_METHODS = {*_BOUNDED_METHODS, "init_transactions", "flush", "list_topics"}
_OVERTIME = 1.2
"""How much longer than its own time-out, and a second, such a method is waited for."""
_FLUSH_WAIT_S, _MISSING_WAITS = 1.0, 3
_INIT_CALL_S = 0.2
"""A call that initialises transactions takes at most so many seconds, so that it ends soon where
nobody wants the producer any more. librdkafka goes on with the next call."""

_REPEATED_ERRORS = {*UNKNOWN_TOPIC_ERRORS, KafkaError.INVALID_PRODUCER_ID_MAPPING}
"""What ends a transaction that a new producer does again: a topic was deleted, which the next flush
waits for and names; or the coordinator has forgotten the transactional id (expired)."""


class StreamsProducer:
    """Writes records with one producer, transactional or not (Kafka Streams' StreamsProducer).

    `name` is its transactional id. With `track_deliveries` it knows where everything that it wrote
    went (`delivered_offsets`), at a price for each record; `identity` is set by who needs it. After
    any error but StreamsError the producer has to be discarded. `on_error` is called at each error
    of its connections, from within its other methods. `require_usable` is called while a method
    waits for a broker; what it raises ends the method, and any outcome is unknown. `require_wanted`
    does the same while the producer is created. `internal_topics` are the application's.
    `get_coordinator_address` tells where the group's coordinator is. `transaction_age` knows since
    when a transaction is open.
    """

    def __init__(
        self,
        name: str,
        settings: Mapping[str, Any],
        *,
        transactional: bool,
        timeout_s: float,
        track_deliveries: bool = False,
        producer_class: type[Producer] | None = None,
        on_error: Callable[[], None] = lambda: None,
        require_usable: Callable[[], None] | None = None,
        require_wanted: Callable[[], None] | None = None,
        internal_topics: Mapping[str, InternalKind] = MappingProxyType({}),
        get_coordinator_address: GetCoordinatorAddress = find_no_address,
    ) -> None:
        self.name = name
        self._internal_topics = internal_topics
        self.transactional = transactional
        self.delivered_offsets = DeliveredOffsets() if track_deliveries else None
        self.identity: ProducerIdentity | None = None
        self._timeout_s = timeout_s
        self._require_usable = require_usable
        self._undelivered: list[KafkaError] = []
        reports: dict[str, Any] = {}
        if self.delivered_offsets is not None:
            reports["on_delivery"] = self.delivered_offsets.note_delivery
        elif not transactional:
            reports["on_delivery"] = create_failure_collector(self._undelivered)
        self._logger = LibrdkafkaLogger(on_error)
        self._producer = create_client(
            "producer",
            producer_class or Producer,
            {**with_topic_ids_logged(settings), **reports},
            self._logger,
        )
        self.produce: Callable[..., None] = self._producer.produce
        self._moved_coordinator = MovedCoordinator(get_coordinator_address)
        self.transaction_age = TransactionAge(settings.get("transaction.timeout.ms"))
        if transactional:
            self._init_transactions(require_wanted)

    def _init_transactions(self, require_wanted: Callable[[], None] | None) -> None:
        """Get the producer's id and epoch, which fences its predecessor.

        Raises also what `require_wanted` raises, and destroys the client in any case.
        """
        try:
            if require_wanted is None:
                self._call_producer("init_transactions", self._timeout_s)
            else:
                self._init_while_wanted(require_wanted)
        except Exception as error:
            # A client that goes on in the background fences whoever has its transactional id next.
            # The error may be kept for long, and with it all that its frames hold.
            release_error_frames(error)
            self._logger.is_muted = True  # a line for each of its tries
            self.discard()
            raise

    def _init_while_wanted(self, require_wanted: Callable[[], None]) -> None:
        """Get the producer's id and epoch by short calls, each of which goes on with the last."""
        for calls_left in reversed(range(max(math.ceil(self._timeout_s / _INIT_CALL_S), 1))):
            require_wanted()
            if self._require_usable is not None:
                self._require_usable()
            try:
                self.call_client("init_transactions", _INIT_CALL_S)
            except OutcomeUnknown:
                if not calls_left:
                    raise
            else:
                return

    def fetch_partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has.

        Raises: UnknownTopic if there is no topic of that name; NotReady if that can't be told yet.
        """
        metadata = self._call_producer("list_topics", topic, self._timeout_s).topics[topic]
        if metadata.error is not None:
            check_authorized(metadata.error, "Write", topic)
            if metadata.error.code() in RETRIABLE_ERRORS:
                raise NotReady(f"topic {topic!r}: {metadata.error.str()}")
            raise UnknownTopic(
                f"topic {topic!r} does not exist ({metadata.error.name()}): create it, or correct "
                "its name"
            )
        return len(metadata.partitions)

    def begin_transaction(self) -> None:
        """Begin a transaction, unless one is open or the producer is not transactional."""
        if self.transactional and not self.transaction_age.is_open:
            self._call_producer("begin_transaction")
            self.transaction_age.note_beginning()

    def wait_for_queue_room(self) -> None:
        """Wait until the producer's full queue takes records again.

        Raises: OutcomeUnknown after the time-out.
        """
        if self._call_producer("flush", self._timeout_s):
            raise OutcomeUnknown(f"the producer's queue stayed full for {self._timeout_s:g} s")

    def poll_delivery_reports(self) -> None:
        """Serve the delivery reports that have arrived, without waiting."""
        self._call_producer("poll", 0)

    def flush(self) -> None:
        """Wait until all records are delivered, and raise OutcomeUnknown if one is not.

        Also where a topic was seen to be made again: what the transaction has written into the
        former one is gone, and is written once more into the new one.
        """
        undelivered_count = self._flush_and_count_undelivered()
        if undelivered_count or self._undelivered:
            for error in self._undelivered:
                if (refusal := find_write_refusal(error, "a record was not delivered")) is not None:
                    raise refusal
            reasons = ", ".join(sorted({each.str() for each in self._undelivered})) or "no answer"
            raise OutcomeUnknown(
                f"{undelivered_count + len(self._undelivered)} not delivered: {reasons}"
            )
        if again := self._logger.pop_topics_made_again():
            names = ", ".join(map(repr, sorted(again)))
            raise OutcomeUnknown(
                f"output {names} is another topic of the same name than the one that was written "
                "to: it was deleted and created again. What it had is gone, and what is not "
                "committed is written again"
            )

    def _flush_and_count_undelivered(self) -> int:
        """Flush, and return how many records are not delivered.

        Raises: OutcomeUnknown for records of a topic that the brokers have not had for
        `_MISSING_WAITS` waits: they would wait for it until the transaction is timed out.
        """
        left_s, wait_count = self._timeout_s, 0
        while True:
            wait_s = min(_FLUSH_WAIT_S, left_s)
            undelivered_count: int = self._call_producer("flush", wait_s)
            left_s -= wait_s
            if not undelivered_count or left_s <= 0:
                return undelivered_count
            if isinstance(self.find_transaction_error(), WriteRefused):
                return undelivered_count  # what is not sent stays so until the abort
            wait_count = wait_count + 1 if self._logger.missing_topics else 0
            if wait_count >= _MISSING_WAITS:
                missing = self._logger.missing_topics
                raise OutcomeUnknown(explain_missing_topics(missing, self._internal_topics))

    def purge_outstanding_records(self) -> None:
        """Give up all records that are not acknowledged, and serve their delivery reports.

        The reports of those that were sent have the error _PURGE_INFLIGHT: a broker may have them.
        """
        self._producer.purge()
        self._call_producer("flush", self._timeout_s)

    def send_offsets_to_transaction(
        self, offsets: OffsetsToCommit, group_metadata: bytes, limit_s: float = math.inf
    ) -> None:
        """Send the offsets into the transaction, as the group member of `group_metadata`.

        Raises: InputDeleted for an input that the brokers do not have any more, OutcomeUnknown
        after the time-out, or after `limit_s` seconds if that is less.
        """
        sent = [TopicPartition(*p, c.offset, c.metadata) for p, c in offsets]
        timeout_s = min(self._timeout_s, limit_s)
        try:
            self._call_producer(_SEND_OFFSETS, sent, group_metadata, timeout_s, limit_s=limit_s)
        except StreamsError as error:
            cause = error.__cause__
            if isinstance(cause, KafkaException) and cause.args[0].code() in UNKNOWN_TOPIC_ERRORS:
                raise InputDeleted(explain_deleted_inputs(str(error))) from error
            raise
        self._moved_coordinator.note_reached()

    def commit_transaction(self) -> None:
        """Commit the transaction."""
        self._call_producer("commit_transaction", self._timeout_s)
        self.transaction_age.note_end()

    def abort_transaction(self) -> None:
        """Abort the transaction if one is open, and go on with the same epoch."""
        if self.transaction_age.is_open:
            self._call_producer("abort_transaction", self._timeout_s)
            self.transaction_age.note_end()

    def discard(self) -> None:
        """Discard the producer with all that it holds; its successor's epoch fences it.

        The client is destroyed when the tasks that hold its `produce` are closed and the reports of
        what it had are served. Its own `close` would wait for a broker that is away, without a
        bound (measured with confluent-kafka 2.16).
        """
        self._producer.purge()
        with suppress(TaskMigrated, OutcomeUnknown, StreamsError):
            self.poll_delivery_reports()
        del self._producer, self.produce

    def try_abort_and_close(self) -> bool:
        """Close the producer, and abort an open transaction so that nobody waits for it.

        Returns False if that was not possible: no broker answered, or the producer was fenced.
        """
        aborted = True
        try:
            self.abort_transaction()
        except (TaskMigrated, OutcomeUnknown, StreamsError) as error:
            log.info("the open transaction is left to its time-out: %s", error)
            aborted = False
        self.discard()
        return aborted

    def translate_produce_error(
        self, error: Exception, action: str, topic: str
    ) -> Exception | None:
        """Return the recovery error for what a transactional producer's `produce` raised, or None.

        For a fatal error, such as being fenced, `produce` only says that there was one; the next
        transaction call names it.
        """
        if isinstance(error, KafkaException) and error.args[0].code() == KafkaError._FATAL:
            try:
                self._producer.begin_transaction()
            except KafkaException as fatal:
                self._raise_if_not_authorized(fatal.args[0], ())
                return self._translate_fatal_error(fatal, action)
        return translate_produce_error(error, action, topic)

    def find_transaction_error(self) -> Exception | None:
        """Return the recovery error of the transaction if it has failed; None if it has not.

        `produce` and delivery reports only say that it has.
        """
        if not self.transactional:
            return None
        try:
            self._producer.begin_transaction()
        except KafkaException as error:
            cause: KafkaError = error.args[0]
            if cause.code() == KafkaError._STATE:
                return None  # one is open, and works
            if cause.code() in _REPEATED_ERRORS and cause.txn_requires_abort():
                return OutcomeUnknown(f"write: {cause.str()} ({cause.name()})")
            translated = translate_transaction_error(error, "write")
            return self.transaction_age.add_reason_of_fencing(translated)
        self.transaction_age.note_beginning()
        return None

    def _call_producer(self, name: str, *arguments: Any, limit_s: float = math.inf) -> Any:
        """Call a method of the client, and translate its error to the recovery error.

        Raises also what `require_usable` raises while a method waits.
        """
        require_usable = self._require_usable if name in _WAITING_METHODS else None
        if name not in _BOUNDED_METHODS:
            return self.call_client(name, *arguments, require_usable=require_usable)
        limit_s = min(self._timeout_s * _OVERTIME + 1, limit_s)
        check = require_usable or _allow_every_call
        if name == _SEND_OFFSETS:
            check = wrap_check_to_raise_if_deleted(check, arguments[0], self._producer)
            check = self._moved_coordinator.wrap_check_to_raise_if_moved(check)
        try:
            return self.call_client(name, *arguments, require_usable=check, limit_s=limit_s)
        except TimeoutError as error:
            raise OutcomeUnknown(f"{name}: {error}, past its time-out") from error

    def call_client(
        self,
        name: str,
        *arguments: Any,
        require_usable: Callable[[], None] | None = None,
        limit_s: float = float("inf"),
    ) -> Any:
        """Call a method of the client while it is usable, and translate its error."""
        method = getattr(self._producer, name)
        try:
            if require_usable is None:
                return call_and_wrap_bare_error(method, arguments)
            return call_while_usable(method, arguments, require_usable, limit_s)
        except KafkaException as error:
            self._raise_if_not_authorized(error.args[0], arguments)
            # No variable holds what is raised: its frame would hold it, and so the client, too.
            explain = self.transaction_age.add_reason_of_fencing
            raise explain(translate_transaction_error(error, name)) from error
        except SystemError as error:
            # confluent-kafka 2.16 raises a fatal error from within the callbacks that flush and
            # poll serve, and may lose it there. The next transaction call names it.
            try:
                self._producer.begin_transaction()
            except KafkaException as fatal:
                self._raise_if_not_authorized(fatal.args[0], arguments)
                raise self._translate_fatal_error(fatal, name) from error
            raise

    def _translate_fatal_error(self, error: KafkaException, action: str) -> Exception:
        return self.transaction_age.add_reason_of_fencing(translate_client_error(error, action))

    def _raise_if_not_authorized(self, error: KafkaError, arguments: Sequence[Any]) -> None:
        """Raise AuthorizationError for a missing right to anything but a topic."""
        match error.code():
            case KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
                check_authorized(error, "Write", self.name)
            case KafkaError.CLUSTER_AUTHORIZATION_FAILED:
                check_authorized(error, "IdempotentWrite", "kafka-cluster")
            case KafkaError.GROUP_AUTHORIZATION_FAILED:
                groups = [read_group_of_metadata(each) for each in arguments if type(each) is bytes]
                check_authorized(error, "Read", "".join(groups))


def _allow_every_call() -> None:
    """Do nothing: no call is refused where nothing is known that would end it."""
