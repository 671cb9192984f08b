"""List all symptoms: the codes, what each means, and how it is recognised.

Codes are never given anew: one that goes out of use stays a gap. The tens have a subject: 00
settings and topologies, 10 transactions, 20 tasks and state, 30 the group, 40 brokers, 50 results,
60 resources, 70 records, 80 the application itself.

The order counts: the first symptom with a part of a message is the message's, so what is more
specific comes first. A test looks each part up in the source, another finds the code of each error
that is raised.
"""

from __future__ import annotations

from streams.symptoms.state_table import STATE_SYMPTOMS
from streams.symptoms.symptom import Symptom

_BROKERS = (
    Symptom(
        code="MR-040",
        meaning="No broker answers; it is waited for, and nothing is lost.",
        page="broker-away.md",
        messages=(
            "no broker answers at ",
            *("so a broker is waited for: ", "a broker is still waited for, "),
            "the embedded broker is gone and can't be started again",
            "the embedded broker did not start in ",
            "what is not committed is given up",
        ),
        later_messages=(
            *("no answer in time", "_ALL_BROKERS_DOWN", "_TRANSPORT"),
            "dead letters of global table ",
        ),
        classes=("BrokerUnavailable",),
    ),
    Symptom(
        code="MR-041",
        meaning="A coordinator is loading, has moved, or does not answer.",
        page="coordinator-unavailable.md",
        messages=(
            "the coordinator of ",
            "'s coordinator has moved to ",
            "COORDINATOR_LOAD_IN_PROGRESS",
            "COORDINATOR_NOT_AVAILABLE",
            "NOT_COORDINATOR",
        ),
    ),
    Symptom(
        code="MR-042",
        meaning="The leader of a partition is away while other brokers answer.",
        page="broker-away.md",
        messages=("no leader answers for ",),
        later_messages=("LEADER_NOT_AVAILABLE", "NOT_LEADER_OR_FOLLOWER", "NOT_ENOUGH_REPLICAS"),
    ),
    Symptom(
        code="MR-043",
        meaning="Brokers refuse the credentials, or have a certificate that isn't trusted.",
        page="access-refused.md",
        messages=(
            *("SASL_AUTHENTICATION_FAILED", " refuses the credentials of user ", "_SSL"),
            " refused the client certificate",
        ),
        classes=("AuthenticationError",),
    ),
    Symptom(
        code="MR-044",
        meaning="No ACL allows the application to do something.",
        page="access-refused.md",
        messages=("_AUTHORIZATION_FAILED",),
        classes=("AuthorizationError", "TopicRefused"),
    ),
)

_TRANSACTIONS = (
    Symptom(
        code="MR-012",
        meaning="A transaction took longer than its time-out, and the brokers aborted it.",
        page="transaction-timed-out.md",
        messages=(
            ", so the brokers have aborted it",
            "TRANSACTION_ABORTABLE",
            "(transactional.id.expiration.ms)",
        ),
    ),
    Symptom(
        code="MR-010",
        meaning="A producer was fenced: another one has its transactional id, or it timed out.",
        page="producer-fenced.md",
        messages=("_FENCED", "was fenced twice: another worker has the same state directory"),
    ),
    Symptom(
        code="MR-011",
        meaning="A producer has an old epoch: its transaction was aborted, or another has its id.",
        page="producer-fenced.md",
        messages=("INVALID_PRODUCER_EPOCH", "INVALID_PRODUCER_ID_MAPPING"),
    ),
    Symptom(
        code="MR-014",
        meaning="A call came in a state of the transaction that does not allow it.",
        page="invalid-transaction-state.md",
        messages=("INVALID_TXN_STATE", "CONCURRENT_TRANSACTIONS"),
    ),
    Symptom(
        code="MR-015",
        meaning="Committed offsets are pending: a transaction with them is not over.",
        page="offsets-pending.md",
        messages=("UNSTABLE_OFFSET_COMMIT", "KAFKA-17507"),
    ),
    Symptom(
        code="MR-016",
        meaning="A transaction hangs: it is open, and its owner is gone.",
        page="hanging-transaction.md",
        messages=("the transaction of an earlier attempt is still open",),
    ),
    Symptom(
        code="MR-013",
        meaning="It is not known whether a commit or a write took effect; it is found out.",
        page="outcome-unknown.md",
        later_messages=(
            "_TIMED_OUT",
            "over from what is committed: ",
            " were not acknowledged may be written as well",
        ),
        classes=("OutcomeUnknown", "ConnectionLost"),
    ),
)

_RESOURCES = (
    Symptom(
        code="MR-062",
        meaning="A disk is full.",
        page="disk-full.md",
        messages=(
            "as a disk is full",
            "make room and start ",
            "the disk of the embedded broker's data is full",
        ),
    ),
    Symptom(
        code="MR-063",
        meaning="A thread is held up: by a function, a store or the broker.",
        page="slow.md",
        messages=(
            "has been in the user's function ",
            "has been waiting for the broker ",
            "has been in a state store ",
            ": is the disk too slow, or full?",
        ),
    ),
)

_GROUP = (
    Symptom(
        code="MR-034",
        meaning="A record takes longer than max_poll_interval_ms: the worker leaves its group.",
        page="rebalances.md",
        messages=(": its thread has been busy for ",),
    ),
    Symptom(
        code="MR-030",
        meaning="The group has members that are not of this application.",
        page="members-rejected.md",
        messages=(
            " has members that are not of this application (",
            "INCONSISTENT_GROUP_PROTOCOL",
            " can't be joined with group_protocol='streams' (",
        ),
    ),
    Symptom(
        code="MR-031",
        meaning="Another member has this one's instance id.",
        page="members-rejected.md",
        messages=(
            "another worker joins again and again with this one's instance id",
            "replaced while joining: the tasks may have moved",
            "another worker has the ids of the state directory ",
        ),
    ),
    Symptom(
        code="MR-032",
        meaning="The group has too many members, or its record is too large.",
        page="members-rejected.md",
        messages=(
            "GROUP_MAX_SIZE_REACHED",
            " can't be formed: its record in __consumer_offsets would have ",
            ". So brokers answer, among others, where a group's record is larger than ",
            " bytes, and the brokers accept ",
        ),
    ),
    Symptom(
        code="MR-033",
        meaning="This topology can't run beside the one that the group runs.",
        page="members-rejected.md",
        messages=(
            " was formed with another topology, and a streams group keeps its ",
            " has a newer topology than this worker, the broker says: ",
        ),
        classes=("TopologyRefused",),
    ),
    Symptom(
        code="MR-035",
        meaning="A streams group has no tasks, as topics are missing.",
        page="streams-group-topics.md",
        messages=(
            " has no tasks yet, the broker says: ",
            " has no tasks any more, the broker says: ",
        ),
    ),
    Symptom(
        code="MR-036",
        meaning="Topics of a streams group have wrong numbers of partitions.",
        page="streams-group-topics.md",
        messages=(": topics have wrong numbers of partitions, the broker says: ",),
    ),
    Symptom(
        code="MR-021",
        meaning="Tasks have moved to another member, and this one joins again.",
        page="task-migrated.md",
        messages=("UNKNOWN_MEMBER_ID", "the group does not know this member any more"),
        classes=("TaskMigrated",),
    ),
)

_RESULTS = (
    Symptom(
        code="MR-050",
        meaning="Nothing is read, or nothing is seen by readers.",
        page="reads-nothing.md",
        messages=("nothing is committed for ",),
    ),
    Symptom(
        code="MR-051",
        meaning="Records came when their windows had closed, and were dropped.",
        page="reads-nothing.md",
        messages=(" came when their windows had closed, and were dropped",),
    ),
    Symptom(
        code="MR-052",
        meaning="Results are missing.",
        page="results-wrong.md",
        messages=(" sampled keys of input ", " is skipped, as it has no key"),
    ),
    Symptom(
        code="MR-053",
        meaning="Results are there twice.",
        page="results-wrong.md",
        messages=("Records would count twice",),
    ),
)

_RECORDS = (
    Symptom(
        code="MR-073",
        meaning="A broker refuses a record for its timestamp.",
        page="records-refused.md",
        messages=("INVALID_TIMESTAMP",),
    ),
    Symptom(
        code="MR-071",
        meaning="A change is larger than its changelog takes, or a record than its topic.",
        page="records-refused.md",
        messages=("MSG_SIZE_TOO_LARGE", ": keep less in one value, or raise that setting"),
        classes=("ChangeTooLarge",),
    ),
    Symptom(
        code="MR-070",
        meaning="A serde refuses a key or a value, or a schema does not match.",
        page="records-refused.md",
        messages=(" can't take ", "Was it written with another serde?"),
        classes=("SerdeError", "StoreSerdeError"),
    ),
    Symptom(
        code="MR-072",
        meaning="A step can't process a record.",
        page="records-refused.md",
        messages=(" can't process ", " can't be processed: ", " handler itself failed on "),
        classes=("ValueRefused", "WriteRefused", "InvalidTopic", "UnknownTopic"),
    ),
)

_APPLICATION = (
    Symptom(
        code="MR-061",
        meaning="The memory of a worker grows.",
        page="memory-grows.md",
        messages=(" is full: ",),
    ),
    Symptom(
        code="MR-080",
        meaning="A store can't be queried at this moment, or has its key on another worker.",
        page="application.md",
        classes=("StoreUnavailable",),
    ),
    Symptom(
        code="MR-081",
        meaning="A worker does not end in time.",
        page="application.md",
        later_messages=(" has not ended after ",),
        classes=("NotClosed",),
    ),
    Symptom(
        code="MR-082",
        meaning="Another worker has asked the whole application to shut down.",
        page="application.md",
        messages=(" asks the whole application to shut down: ",),
        classes=("ApplicationShutdown",),
    ),
    Symptom(
        code="MR-083",
        meaning="A worker was ended by a signal, such as SIGKILL.",
        page="application.md",
        messages=(", without a commit",),
    ),
)

_GENERAL = (
    Symptom(
        code="MR-001",
        meaning="A setting, an address, a directory or an argument can't be used.",
        page="general.md",
        classes=("ConfigError",),
        is_general=True,
    ),
    Symptom(
        code="MR-002",
        meaning="A topology can't be built: a step is described wrongly.",
        page="general.md",
        classes=("TopologyError",),
        is_general=True,
    ),
    Symptom(
        code="MR-003",
        meaning="Processing can't go on; nothing of the open transaction was committed.",
        page="general.md",
        classes=("StreamsError", "StateError", "UserError"),
        is_general=True,
    ),
)

SYMPTOMS = (
    *_RESOURCES,
    *_GROUP,
    *_BROKERS,
    *_TRANSACTIONS,
    *STATE_SYMPTOMS,
    *_RESULTS,
    *_RECORDS,
    *_APPLICATION,
    *_GENERAL,
)
"""All symptoms, those with the most specific messages first."""
