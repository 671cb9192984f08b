"""List what is looked for in logs: parts of messages, with the kind of event that they mean.

Parts of our own messages are those of `streams.symptoms.table`. Those of Kafka Streams and brokers
are names of classes, and messages as Kafka 4.4 has them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from streams.symptoms.lookup import list_message_parts
from streams.symptoms.table import SYMPTOMS

LAST_LINE = "millrace: "
"""Begins the last line of a process that an error ends."""


class EventKind(StrEnum):
    """Enumerates what happened; the later ones alone are no fault."""

    DISK = "disk"
    AUTHENTICATION = "authentication"
    AUTHORIZATION = "authorization"
    BROKER_AWAY = "broker away"
    COORDINATOR = "coordinator"
    LOSS = "lost topics or offsets"
    RECORD = "failed record"
    PAUSE = "pause"
    TIME_OUT = "time-out"
    GROUP = "rejected member"
    FENCING = "fencing"
    ABORT = "abort"
    MIGRATION = "migration"
    CORRUPTION = "corruption"
    FAILURE = "failure"
    RESTORE = "restore"
    REBALANCE = "rebalance"
    START = "start"
    END_OF_OUTAGE = "recovered"
    END = "end"


UNCOUNTED_KINDS = frozenset(
    {
        *(EventKind.DISK, EventKind.AUTHENTICATION, EventKind.AUTHORIZATION),
        *(EventKind.BROKER_AWAY, EventKind.COORDINATOR, EventKind.LOSS),
        *(EventKind.FENCING, EventKind.CORRUPTION, EventKind.END_OF_OUTAGE),
    }
)
"""The kinds whose names have no plural."""
NO_FAULTS = frozenset(
    {
        *(EventKind.RESTORE, EventKind.REBALANCE),
        *(EventKind.START, EventKind.END_OF_OUTAGE, EventKind.END),
    }
)


@dataclass(frozen=True, slots=True)
class Pattern:
    """Describes a part of lines: the kind of event, and the code of the page about it.

    `is_warning`: counts in lines from warning on only, since the part alone says too little.
    """

    text: str
    kind: EventKind
    code: str = ""
    is_warning: bool = False


_KINDS = {
    "MR-010": EventKind.FENCING,
    "MR-011": EventKind.FENCING,
    "MR-012": EventKind.TIME_OUT,
    "MR-013": EventKind.TIME_OUT,
    "MR-014": EventKind.ABORT,
    "MR-015": EventKind.ABORT,
    "MR-016": EventKind.ABORT,
    "MR-020": EventKind.CORRUPTION,
    "MR-021": EventKind.MIGRATION,
    "MR-022": EventKind.LOSS,
    "MR-023": EventKind.GROUP,
    "MR-024": EventKind.LOSS,
    "MR-025": EventKind.LOSS,
    "MR-030": EventKind.GROUP,
    "MR-031": EventKind.GROUP,
    "MR-032": EventKind.GROUP,
    "MR-034": EventKind.PAUSE,
    "MR-040": EventKind.BROKER_AWAY,
    "MR-041": EventKind.COORDINATOR,
    "MR-042": EventKind.BROKER_AWAY,
    "MR-043": EventKind.AUTHENTICATION,
    "MR-044": EventKind.AUTHORIZATION,
    "MR-060": EventKind.FAILURE,
    "MR-062": EventKind.DISK,
    "MR-063": EventKind.PAUSE,
    "MR-070": EventKind.RECORD,
    "MR-071": EventKind.RECORD,
    "MR-072": EventKind.RECORD,
    "MR-073": EventKind.RECORD,
}
"""The kinds of symptoms; those of others are failures."""

_OUR_EVENTS = (
    Pattern(" runs '", EventKind.START),
    Pattern("RUNNING -> REBALANCING", EventKind.REBALANCE),
    Pattern("PENDING_SHUTDOWN -> NOT_RUNNING", EventKind.END),
    Pattern("PENDING_ERROR -> ERROR", EventKind.END),
    Pattern("a broker answers again at ", EventKind.END_OF_OUTAGE),
    Pattern(" is restored: ", EventKind.RESTORE),
    Pattern(" records replayed, at most ", EventKind.RESTORE),
)
_OUR_MESSAGES, _MESSAGES_IN_ANY_LINE = (
    tuple(
        Pattern(part, _KINDS.get(code, EventKind.FAILURE), code, is_warning=True)
        for code, parts in list_message_parts(of_classes=of_classes)
        for part in parts
    )
    for of_classes in (True, False)
)
"""The second leaves out words that are common, and mean what they do only where we say them."""
_OUR_ENDS = (
    Pattern(" is replaced in ", EventKind.FAILURE, "MR-003", is_warning=True),
    Pattern("a stream thread ended", EventKind.FAILURE, "MR-003", is_warning=True),
    Pattern(" was ended by SIG", EventKind.FAILURE, "MR-083", is_warning=True),
    Pattern(": Address already in use", EventKind.FAILURE, "MR-001", is_warning=True),
    # The last line of a process that names no fault with a page.
    Pattern(LAST_LINE, EventKind.FAILURE, "MR-003", is_warning=True),
)
_KAFKA_STREAMS = (
    Pattern("No space left on device", EventKind.DISK, "MR-062"),
    Pattern("Disk quota exceeded", EventKind.DISK, "MR-062"),
    Pattern("KafkaStorageException", EventKind.DISK, "MR-062"),
    Pattern("ProcessorStateException", EventKind.CORRUPTION, "MR-020"),
    Pattern("SaslAuthenticationException", EventKind.AUTHENTICATION, "MR-043"),
    Pattern("SslAuthenticationException", EventKind.AUTHENTICATION, "MR-043"),
    Pattern("SSLHandshakeException", EventKind.AUTHENTICATION, "MR-043"),
    Pattern("AuthorizationException", EventKind.AUTHORIZATION, "MR-044"),
    Pattern("Exception caught in process", EventKind.RECORD, "MR-072"),
    Pattern("Failed to deserialize", EventKind.RECORD, "MR-070"),
    Pattern("SerializationException", EventKind.RECORD, "MR-070"),
    Pattern("RecordTooLargeException", EventKind.RECORD, "MR-071"),
    Pattern("InvalidTimestampException", EventKind.RECORD, "MR-073"),
    Pattern("consumer poll timeout has expired", EventKind.PAUSE, "MR-034"),
    Pattern("OffsetOutOfRangeException", EventKind.LOSS, "MR-024"),
    Pattern("NoOffsetForPartitionException", EventKind.LOSS, "MR-022"),
    Pattern("MissingSourceTopicException", EventKind.LOSS, "MR-025"),
    Pattern("UnknownTopicOrPartitionException", EventKind.LOSS, "MR-025"),
    Pattern("InconsistentGroupProtocolException", EventKind.GROUP, "MR-030"),
    Pattern("FencedInstanceIdException", EventKind.GROUP, "MR-031"),
    Pattern("GroupMaxSizeReachedException", EventKind.GROUP, "MR-032"),
    Pattern("LockException", EventKind.GROUP, "MR-023"),
    Pattern("ProducerFencedException", EventKind.FENCING, "MR-010"),
    Pattern("InvalidProducerEpochException", EventKind.FENCING, "MR-011"),
    Pattern("InvalidPidMappingException", EventKind.FENCING, "MR-011"),
    Pattern("InvalidTxnStateException", EventKind.ABORT, "MR-014"),
    Pattern("TransactionAbortedException", EventKind.ABORT, "MR-013"),
    Pattern("TaskCorruptedException", EventKind.CORRUPTION, "MR-020"),
    Pattern("Encounter corrupted task", EventKind.CORRUPTION, "MR-020"),
    Pattern("TaskMigratedException", EventKind.MIGRATION, "MR-021"),
    Pattern("Detected that the thread is being fenced", EventKind.MIGRATION, "MR-021"),
    Pattern("CommitFailedException", EventKind.MIGRATION, "MR-021"),
    Pattern("RebalanceInProgressException", EventKind.REBALANCE),
    *(
        # A client that looks for its coordinator, or joins, meets both in passing and logs them at
        # INFO by their bare names.
        Pattern(f"{package}{name}", EventKind.COORDINATOR, "MR-041", is_warning=not package)
        for package in ("errors.", "")
        for name in ("CoordinatorNotAvailableException", "CoordinatorLoadInProgressException")
    ),
    Pattern("could not be established. Node may not be available", EventKind.BROKER_AWAY, "MR-040"),
    Pattern(
        "could not be established. Broker may not be available", EventKind.BROKER_AWAY, "MR-040"
    ),
    Pattern("errors.TimeoutException", EventKind.TIME_OUT, "MR-013"),
    Pattern("from RUNNING to REBALANCING", EventKind.REBALANCE),
    Pattern("Finished restoring changelog", EventKind.RESTORE),
    Pattern("Restoration in progress for", EventKind.RESTORE),
    Pattern("to ERROR (", EventKind.FAILURE, "MR-003"),
)

_BROKERS = (
    Pattern("Failed authentication with", EventKind.AUTHENTICATION, "MR-043"),
    Pattern("have failed (org.apache.kafka.storage", EventKind.DISK, "MR-062"),
    Pattern("due to timeout (kafka.coordinator.transaction", EventKind.TIME_OUT, "MR-012"),
    Pattern("Completed rollback of ongoing transaction", EventKind.TIME_OUT, "MR-012"),
    Pattern("consumer poll timeout has expired", EventKind.PAUSE, "MR-034"),
    Pattern(" has failed, removing it from the group", EventKind.PAUSE, "MR-021"),
    Pattern(" failed to heartbeat", EventKind.PAUSE, "MR-021"),
    Pattern("Preparing to rebalance group", EventKind.REBALANCE),
    Pattern("[KafkaServer id=", EventKind.START),
    Pattern("[BrokerServer id=", EventKind.START),
    Pattern("is not served until its log is repaired", EventKind.DISK, "MR-062"),
    Pattern("the broker stops: ", EventKind.DISK, "MR-062"),
)

_CODES = {
    each.code: Pattern(
        f"(see {each.code})", _KINDS.get(each.code, EventKind.FAILURE), each.code, is_warning=True
    )
    for each in SYMPTOMS
}
"""What a line says itself goes over all else, but for the codes whose pages say no more."""
_GENERAL = frozenset(each.code for each in SYMPTOMS if each.is_general)
PATTERNS = (
    *_KAFKA_STREAMS,
    *_BROKERS,
    *(*_OUR_EVENTS, *_MESSAGES_IN_ANY_LINE, *_OUR_ENDS),
    *_CODES.values(),
)
"""All patterns, in the order in which they decide about lines of others."""
OWN_PATTERNS = (
    *(*_OUR_EVENTS, *_OUR_MESSAGES, *_OUR_ENDS),
    *_KAFKA_STREAMS,
    *_BROKERS,
    *_CODES.values(),
)
"""The same for lines of ours."""
_CODE = re.compile(r"\(see (MR-\d{3})\)")


def find_code_pattern(message: str) -> Pattern | None:
    """Return the pattern of the code that a line of ours ends with, None without one that helps."""
    found = _CODE.search(message)
    return None if found is None or found[1] in _GENERAL else _CODES.get(found[1])
