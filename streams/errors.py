"""Define the errors of the product, each named by what happens next.

    error            raised to               what happens
    ConfigError      the caller of App       refused before anything runs
    TopologyError    the caller of the DSL   refused at the step that is wrong
    StreamsError     a running thread        the thread stops, nothing is committed
    SerdeError       a running thread        as StreamsError; names the step and the record
    AuthenticationError  both               refused before anything runs, or as StreamsError: the
                                             broker refuses the credentials, or isn't trusted
    BrokerUnavailable    both                refused before anything runs, or as StreamsError: no
                                             broker answers, or not in time. It may pass
    AuthorizationError   both                refused before anything runs, or as StreamsError: no
                                             ACL allows an operation
    ApplicationShutdown  a running thread    as StreamsError: another member's error ends all
    TopologyRefused  a running thread        as StreamsError: its topology can't run beside the
                                             group's
    TaskAssignmentError  a running thread    as StreamsError: the application's own assignor of
                                             tasks says that it can't assign them
    PositionRefused  a running thread        as StreamsError, if no other member has committed the
                                             task since; else as TaskMigrated
    InvalidTopic     the production handler  the record is failed, skipped or made a dead letter
    UnknownTopic     the production handler  the record is failed, skipped or made a dead letter
    TaskMigrated     the runtime             tasks are closed without a commit, the member rejoins
    GenerationOver   the runtime             while the member joins: roll back and go on with the
                                             tasks; else as TaskMigrated
    TaskCorrupted    the runtime             all tasks roll back, the stores it names are rebuilt
    OutcomeUnknown   the runtime             roll back, new producer, read the offsets back, go on
    ValueRefused     the runtime             as OutcomeUnknown; then the task serialises values as
                                             they are written, to find the record that wrote the
                                             refused one
    WriteRefused     the runtime             as OutcomeUnknown; then records are written one by
                                             one, to find the one that the broker refused

The last six never reach a user: each selects a recovery.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from streams.command_lines import format_command
from streams.symptoms.lookup import find_symptom

if TYPE_CHECKING:
    from state.early_serialization import ChangeLimit

_MISSING_RIGHT = re.compile(
    r"not allowed to .*: add the ACL (?P<operation>\w+) on "
    r"(?P<resource>topic|group|transactional id|cluster) (?P<name>.*?)"
    r"(?: or on a prefix of it)? for this user \(`[^`]* acls",
    re.DOTALL,
)
"""The message of AuthorizationError, by its parts."""
_OFFERED_COMMAND = re.compile(r"\(`[^`]*` lists")


class UserError(Exception):
    """Signals something that a person can correct; the message says what is wrong and how."""

    @property
    def code(self) -> str:
        """Return the stable code of what went wrong, which `millrace explain-error` explains."""
        symptom = find_symptom(self)
        return "" if symptom is None else symptom.code


class ConfigError(UserError):
    """Signals a setting, an address or a directory that can't be used."""


class TopologyError(UserError):
    """Signals a topology that can't be built; the message names the step."""


class StreamsError(UserError):
    """Signals that processing can't go on.

    Nothing of the running transaction was committed.
    """


class AuthenticationError(ConfigError, StreamsError):
    """Signals that a broker refuses the credentials, or has a certificate that isn't trusted.

    The message names the setting of `connection` to change, and shows no secret.
    """


class BrokerUnavailable(ConfigError, StreamsError):
    """Signals that no broker answers, or that brokers don't do in time what a task waits for.

    It may pass by itself, so a worker that ends with it may be started again later. Kafka Streams'
    counterpart is TimeoutException.
    """


class AuthorizationError(ConfigError, StreamsError):
    """Signals that the application may not do something; the message names the ACL to add.

    `operation` and `resource` are Kafka's words: Read, Write, ...; topic, group, transactional id
    or cluster. Kafka's AuthorizationException.
    """

    def __init__(self, operation: str, resource: str, name: str) -> None:
        # Part of a transactional id is not known before the worker runs.
        pattern = " or on a prefix of it" if resource == "transactional id" else ""
        super().__init__(
            f"not allowed to {operation} {resource} {name!r}: add the ACL {operation} on "
            f"{resource} {name}{pattern} for this user ({format_command('acls')} lists the "
            "ACLs of an application, with --spark those of Spark's readers; "
            f"{resource.replace(' ', '_').upper()}_AUTHORIZATION_FAILED)"
        )
        self.operation = operation
        self.resource = resource
        self.name = name

    @classmethod
    def from_message(cls, message: str) -> AuthorizationError:
        """Return the error whose message another process has passed on. Raises ValueError."""
        if found := _MISSING_RIGHT.match(message):
            error = cls(found["operation"], found["resource"], found["name"])
            # Another process may offer the command with other options.
            if len({_OFFERED_COMMAND.sub("(", each) for each in (str(error), message)}) == 1:
                return error
        raise ValueError(f"not the message of a missing right: {message!r}")

    def __reduce__(self) -> tuple[type[AuthorizationError], tuple[str, str, str]]:
        return type(self), (self.operation, self.resource, self.name)


class InvalidTopic(ValueError):
    """Signals that a record is to be written to a topic whose name is none that Kafka allows.

    The production handler decides about that record. Kafka's InvalidTopicException.
    """

    is_always_shown = True
    """Its text names the topic, also where that is made of a record's values (`log_values`)."""


class UnknownTopic(LookupError):
    """Signals that a record is to be written to a topic that does not exist, or can't be used.

    The production handler decides about that record. Kafka's UnknownTopicOrPartitionException.
    """

    is_always_shown = True


class NotClosed(StreamsError):
    """Signals that threads did not end in time; the message says what each of them is doing."""


class StoreUnavailable(StreamsError):
    """Signals that a store can't be queried at this moment, and why; a retry may succeed.

    Kafka Streams' InvalidStateStoreException.
    """


class StoreNotLocal(StoreUnavailable):
    """Signals that a key is not in a store here, and may be in `partitions` of other workers.

    `owner` is the address of the worker that has the key by Kafka's default partitioner and answers
    queries, None where it is not known. Without
    `has_partitions` this worker has no partition of the store, whatever was asked for. Another
    attempt here does not help while the partitions stay where they are.
    """

    def __init__(
        self,
        store: str,
        partitions: frozenset[int],
        owner: str | None = None,
        *,
        has_partitions: bool = True,
    ) -> None:
        self.store, self.partitions, self.owner = store, partitions, owner
        self.has_partitions = has_partitions
        listed = ", ".join(map(str, sorted(partitions)))
        here = (
            f"store {store!r} has no such key in the partitions of this worker, and"
            if has_partitions
            else f"store {store!r} has no partition on this worker, so nothing was read:"
        )
        super().__init__(
            f"{here} partitions {listed} are with other workers: ask these (owner: "
            f"{owner or 'unknown'})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        create = partial(type(self), has_partitions=self.has_partitions)
        return create, (self.store, self.partitions, self.owner)


class QueryFailed(StreamsError):
    """Signals that the function of a registered query has raised an error; says which one."""


class ApplicationShutdown(StreamsError):
    """Signals that a member asked the whole group to shut down; says which one and why."""


class TopologyRefused(StreamsError):
    """Signals that this topology can't run beside the one that the group runs, and why."""


class TaskAssignmentError(StreamsError):
    """Signals that tasks can't be assigned; raise it in a `task_assignor` that finds out so.

    It ends the threads of all members of the group. Kafka Streams' TaskAssignmentException.
    """


class PositionRefused(StreamsError):
    """Signals that a task can't go on from its committed offsets, as far as this member knows them.

    A member that was cut off may know old ones: another may have the task by now.
    """


class InputDeleted(StreamsError):
    """Signals that an offset can't be committed, since its input is not on the brokers any more."""


class SerdeError(StreamsError):
    """Signals that a serde refused a key or a value; the message names the step and the record."""


class TaskMigrated(Exception):
    """Signals that another member owns, or will own, this thread's tasks.

    The thread closes them without a commit and rejoins. Kafka Streams' TaskMigratedException.
    """


class GenerationOver(TaskMigrated):
    """Signals that the group has refused what names a generation that is over.

    A member that joins has not lost its tasks by that (KIP-429). Kafka's CommitFailedException with
    ILLEGAL_GENERATION or REBALANCE_IN_PROGRESS.
    """


class TaskCorrupted(Exception):
    """Signals that stores of `task` can't be read or may be wrong, and are to be rebuilt.

    The task rolls back first. Kafka Streams' TaskCorruptedException.
    """

    def __init__(self, task: str, stores: Collection[str], reason: str) -> None:
        super().__init__(f"task {task}, store {', '.join(sorted(stores))}: {reason}")
        self.task = task
        self.stores = frozenset(stores)
        self.reason = reason


class ValueRefused(Exception):
    """Signals that a serde, or a changelog, refused at the commit what an earlier record wrote.

    The task rolls back and serialises each value as it is written, so that the record is known.
    """

    def __init__(
        self, task: str, reason: str, limits: Mapping[str, ChangeLimit] | None = None
    ) -> None:
        super().__init__(
            f"task {task}: {reason}. It is processed again with each value serialised as it is "
            "written, which names the record"
        )
        self.task = task
        self.limits = limits or {}
        """By store the largest change that its changelog takes, where a larger one was refused."""


class WriteRefused(Exception):
    """Signals that a broker refused a record, and with it its batch or its transaction.

    All is rolled back and written again one by one, to find the record. `is_found`: the record is
    known, and is not sent again.
    """

    def __init__(self, reason: str, *, is_found: bool = False) -> None:
        super().__init__(reason)
        self.is_found = is_found


class OutcomeUnknown(Exception):
    """Signals that a transaction call failed or timed out, with unknown effect.

    Whether it took effect must be read back from the committed offsets. Kafka Streams: a
    TimeoutException of the producer.
    """


class CoordinatorMoved(OutcomeUnknown):
    """Signals that a producer waits for a coordinator that is elsewhere, so that it is replaced.

    The cause is known: no right and no topic is missing.
    """


class TaskOutcomeUnknown(OutcomeUnknown):
    """Signals that a call of the transaction of `task` failed or timed out, which is its own.

    `is_alone`: no other task was being committed.
    """

    def __init__(self, task: str, reason: str, *, is_alone: bool) -> None:
        super().__init__(f"task {task}: {reason}")
        self.task = task
        self.is_alone = is_alone
