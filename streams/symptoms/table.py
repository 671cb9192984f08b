"""List all symptoms: the codes, what each means, and how it is recognised.

Codes are never given anew: one that goes out of use stays a gap. The tens have a subject: 00
settings and topologies, 10 transactions, 20 tasks and state, 30 the group, 40 brokers, 50 results,
60 resources, 70 records, 80 the application itself, 90 Spark.

The order counts: the first symptom with a part of a message is the message's, so what is more
specific comes first. A test looks each part up in the source, another finds the code of each error
that is raised.
"""

from __future__ import annotations

from streams.symptoms.symptom import Symptom

_TRANSACTIONS = (
    Symptom(
        code="MR-010",
        meaning="A producer was fenced: another one has its transactional id.",
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
        code="MR-012",
        meaning="A transaction took longer than its time-out, and the brokers aborted it.",
        page="transaction-timed-out.md",
        messages=("TRANSACTION_ABORTABLE", "(transactional.id.expiration.ms)"),
    ),
    Symptom(
        code="MR-013",
        meaning="It is not known whether a commit or a write took effect; it is found out.",
        page="outcome-unknown.md",
        classes=("OutcomeUnknown", "ConnectionLost"),
    ),
)

_TASKS = (
    Symptom(
        code="MR-020",
        meaning="A store is damaged or may be wrong, and is rebuilt from its changelog.",
        page="task-corrupted.md",
        messages=(" is rebuilt from its changelog: ", " is damaged: "),
        classes=("TaskCorrupted", "StoreCorrupted"),
    ),
    Symptom(
        code="MR-021",
        meaning="Tasks have moved to another member, and this one joins again.",
        page="task-migrated.md",
        messages=("UNKNOWN_MEMBER_ID", "the group does not know this member any more"),
        classes=("TaskMigrated",),
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
        classes=("StreamsError", "StateError", "UserError", "ValueRefused", "WriteRefused"),
        is_general=True,
    ),
)

SYMPTOMS = (*_TRANSACTIONS, *_TASKS, *_GENERAL)
"""All symptoms, those with the most specific messages first."""
