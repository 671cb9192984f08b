"""Define what each command prints with --json, as the types that `millrace schema` describes.

Each class is a line of JSON, or the one object that the command prints. A field with a default is
left out where it says nothing. A test runs every command and compares what it prints.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from streams.commands.group_outputs import (
    DeletedGroupOutput,
    GroupSettingOutput,
    ListedGroupOutput,
    ResetChangeOutput,
)
from streams.commands.queried_row import QueriedRowOutput, QueryResultOutput
from streams.errors import ConfigError
from streams.log_analysis.report import LogAnalysisOutput
from streams.monitoring.assignment_preview import AssignmentPreview
from streams.monitoring.group_report import GroupReport
from streams.monitoring.scraped_figures import MetricsOutput
from streams.spark.reconciliation.report_schema import ReconciliationOutput


@dataclass(frozen=True)
class CreatedFileOutput:
    """Names a file of a new project."""

    created: str


@dataclass(frozen=True)
class ListedTopicOutput:
    """Shows a topic, and the number of offsets that its partitions span."""

    topic: str
    partitions: int
    offsets: int


@dataclass(frozen=True)
class DescribedTopicOutput:
    """Shows, on the first line, the topic and the settings that it has itself."""

    topic: str
    partitions: int
    settings: dict[str, str | None]


@dataclass(frozen=True)
class DescribedPartitionOutput:
    """Shows a partition on a line of its own; replicas are numbers of brokers."""

    topic: str
    partition: int
    start: int
    stable_end: int
    end: int
    leader: int | None
    replicas: list[int]
    in_sync: list[int]


@dataclass(frozen=True)
class CreatedTopicOutput:
    """Names a topic that was created, or that was there, with its number of partitions."""

    topic: str
    partitions: int


@dataclass(frozen=True)
class DeletedTopicOutput:
    """Names a topic that was deleted."""

    topic: str
    deleted: Literal[True]


@dataclass(frozen=True)
class ConsumedRecordOutput:
    """Shows a record; key and value are what serdes return, headers are names and values.

    A timestamp of -1 is none. Bytes are text where they are printable, else 0x and hexadecimal.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: Any
    value: Any
    headers: list[tuple[str, str | None]]


@dataclass(frozen=True)
class ProducedRecordsOutput:
    """Counts the records that were written."""

    topic: str
    records: int


@dataclass(frozen=True)
class RestoredOffsetOutput:
    """Shows the offset of an input, now and then, and what proves it."""

    input: str
    now: int | None
    then: int | None
    proof: str


@dataclass(frozen=True)
class ImportedOffsetOutput:
    """Shows an offset that is taken over from Kafka Streams, with the task that goes on there."""

    task: str
    input: str
    offset: int


@dataclass(frozen=True)
class InspectedStoreOutput:
    """Shows a store of this machine; null for what is not known, as of one that a worker uses."""

    task: str
    store: str
    kind: str | None
    entries: int | None
    entries_estimated: bool | None
    bytes: int
    changelog_offset: int | None
    written: str | None
    used_by: str | None


@dataclass(frozen=True)
class StoreEntryOutput:
    """Shows an entry of a store; start and end, in ms, are there where the key is in a window."""

    task: str
    key: Any
    timestamp_ms: int | None
    value: Any
    start_ms: int = 0
    end_ms: int | None = None


@dataclass(frozen=True)
class ChangelogEntryOutput:
    """Shows an entry of a changelog, as of a store; a value of null deletes."""

    partition: int
    offset: int
    key: Any
    timestamp_ms: int | None
    value: Any
    start_ms: int = 0
    end_ms: int | None = None


@dataclass(frozen=True)
class ListedTransactionOutput:
    """Shows a transaction that its coordinator knows, with the partitions that it has written."""

    transactional_id: str
    state: str
    producer_id: int
    epoch: int
    started: str | None
    timeout_ms: int
    topics: list[str]


@dataclass(frozen=True)
class OpenTransactionOutput:
    """Shows a transaction that is open in a partition; `hanging` is null if not known."""

    topic: str
    partition: int
    start_offset: int
    producer_id: int
    epoch: int
    last_write: str
    transactional_id: str | None
    hanging: bool | None


@dataclass(frozen=True)
class AbortedTransactionOutput:
    """Names a transaction that was aborted by its transactional id."""

    transactional_id: str
    aborted: Literal[True]


@dataclass(frozen=True)
class AbortedInPartitionOutput:
    """Names a transaction that was aborted in a partition, where it hung."""

    topic: str
    partition: int
    start_offset: int
    aborted: Literal[True]


@dataclass(frozen=True)
class NeededAclOutput:
    """Shows a right, and for what it is needed."""

    resource_type: str
    name: str
    pattern_type: str
    operation: str
    purposes: list[str]


@dataclass(frozen=True)
class NeededAclsOutput:
    """Lists the rights that an application needs."""

    principal: str
    acls: list[NeededAclOutput]
    notes: list[str]


@dataclass(frozen=True)
class BrokerStatusOutput:
    """Shows the embedded broker of a state directory, and the workers that run there.

    `is_answering` is null where that was not asked, as where no address is known.
    """

    is_running: bool
    address: str | None
    process_id: int | None
    data: str
    workers: list[str]
    is_answering: bool | None


@dataclass(frozen=True)
class PlannedEffectOutput:
    """Shows one difference, what becomes of the state by it, why, and what to do about it."""

    difference: str
    outcome: str
    reason: str
    remedy: str


@dataclass(frozen=True)
class PlannedChangeOutput:
    """Shows what a new version makes of a store or an internal topic; `outcome` is the worst."""

    kind: str
    name: str
    outcome: str
    effects: list[PlannedEffectOutput]


@dataclass(frozen=True)
class PlannedTopicOutput:
    """Shows what a start does with an internal topic on the brokers."""

    topic: str
    outcome: str
    settings: dict[str, str]
    reasons: list[str]
    remedies: list[str]


@dataclass(frozen=True)
class PlanOutput:
    """Shows a plan and its exit status; fields that need --against are null without it.

    `refusals` are why a start ends for its inputs or its group. `group_unknown` is why it could not
    be found whether a streams group takes this version, which `status` does not tell; else null.
    """

    status: int
    loses_state: bool | None
    changes: list[PlannedChangeOutput]
    unchanged: int | None
    may_run_side_by_side: bool | None
    conflicts: list[str]
    undeclared: list[str]
    inputs_as_saved: list[str]
    inputs_without_counts: list[str]
    refusals: list[str]
    group_unknown: str | None
    patterns: list[str]
    changelogs: list[str]
    internal_topics: list[PlannedTopicOutput]


@dataclass(frozen=True)
class DoctorFindingOutput:
    """Shows what was found at a point; `application` is empty for the machine and the cluster.

    `code` is the symptom that `millrace explain-error` explains, where there is one.
    """

    point: str
    verdict: Literal["error", "warning", "not looked at", "fine"]
    what: str
    consequence: str
    remedy: str
    application: str
    code: str


@dataclass(frozen=True)
class DoctorOutput:
    """Shows all findings, the worst first, and the exit status."""

    status: int
    findings: list[DoctorFindingOutput]


OUTPUTS: dict[str, Any] = {
    "acls": NeededAclsOutput,
    "broker status": BrokerStatusOutput,
    "broker stop": BrokerStatusOutput,
    "changelog dump": ChangelogEntryOutput,
    "consume": ConsumedRecordOutput,
    "create-topics": CreatedTopicOutput,
    "doctor": DoctorOutput,
    "group configure": GroupSettingOutput,
    "group delete": DeletedGroupOutput,
    "group describe": GroupReport,
    "group list": ListedGroupOutput,
    "group preview": AssignmentPreview,
    "group reset": ResetChangeOutput,
    "group restore-offsets": RestoredOffsetOutput,
    "import-offsets": ImportedOffsetOutput,
    "logs analyze": LogAnalysisOutput,
    "metrics": MetricsOutput,
    "new": CreatedFileOutput,
    "plan": PlanOutput,
    "produce": ProducedRecordsOutput,
    "query": QueriedRowOutput | QueryResultOutput,
    "reconcile": ReconciliationOutput,
    "state dump": StoreEntryOutput,
    "state inspect": InspectedStoreOutput,
    "topics delete": DeletedTopicOutput,
    "topics describe": DescribedTopicOutput | DescribedPartitionOutput,
    "topics list": ListedTopicOutput,
    "topics tail": ConsumedRecordOutput,
    "txn abort": AbortedTransactionOutput | AbortedInPartitionOutput,
    "txn list": ListedTransactionOutput | OpenTransactionOutput,
}
"""The type of a line, or of the one object, that each command prints with --json."""
ONE_OBJECT = frozenset(
    {
        "acls",
        "broker status",
        "broker stop",
        "doctor",
        "group describe",
        "group preview",
        "logs analyze",
        "plan",
        "reconcile",
    }
)
"""The commands that print one object, and not a line for each row."""


@cache
def describe_output(command: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a line, or the object, that a command prints.

    `command` is the words of a command without `millrace`. Raises ConfigError for one that has no
    --json.
    """
    from pydantic import TypeAdapter
    from pydantic.json_schema import GenerateJsonSchema

    if command not in OUTPUTS:
        raise ConfigError(
            f"{command!r} is no command with --json: these are {', '.join(sorted(OUTPUTS))}"
        )
    schema = TypeAdapter(OUTPUTS[command]).json_schema()
    what = "the object" if command in ONE_OBJECT else "each line"
    title = f"{what} that `millrace {command} --json` prints"
    return {"$schema": GenerateJsonSchema.schema_dialect, **schema, "title": title}
