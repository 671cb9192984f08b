"""What can go wrong, each error named by what happens next.

    error            who meets it            what happens
    ConfigError      whoever starts an app   refused before anything runs
    TopologyError    whoever builds one      refused at the step that is wrong
    StreamsError     a running thread        the thread stops, nothing is committed
    SerdeError       a running thread        the same, naming the step and the record
    ApplicationShutdown  a running thread    the same: another member's error ends the application
    TopologyRefused  a running thread        the same: its topology can't run beside the group's
    TaskMigrated     the runtime             tasks are closed without a commit, the member rejoins
    TaskCorrupted    the runtime             all tasks roll back, the stores it names are rebuilt
    OutcomeUnknown   the runtime             roll back, new producer, read the offsets back, go on
    ValueRefused     the runtime             the same, and its task serialises values as they are
                                             written, to find the record that wrote the one refused

The last four never reach a user: they name a recovery.
"""

from __future__ import annotations

from collections.abc import Collection


class UserError(Exception):
    """Something that a person can put right; the message says what was wrong and what to do."""


class ConfigError(UserError):
    """A setting, an address or a directory that can't be used."""


class TopologyError(UserError):
    """The topology can't be built; the message names the step."""


class StreamsError(UserError):
    """Processing can't go on. Nothing of the running transaction was committed."""


class NotClosed(StreamsError):
    """The threads did not end in time; the message says what each of them is doing."""


class StoreUnavailable(StreamsError):
    """A store can't be read from outside at this moment; the message says why. Ask again."""


class ApplicationShutdown(StreamsError):
    """A member of the group has asked all of them to end; the message says which, and why."""


class TopologyRefused(StreamsError):
    """The group runs another topology, beside which this one can't run; the message says why."""


class SerdeError(StreamsError):
    """A serde refused a key or a value; the message names the step and the record."""


class TaskMigrated(Exception):
    """Another member has, or will get, this thread's tasks: close without a commit and rejoin."""


class TaskCorrupted(Exception):
    """A store of `task` can't be read or could lie: roll back, and rebuild the `stores` named."""

    def __init__(self, task: str, stores: Collection[str], reason: str) -> None:
        super().__init__(f"task {task}, store {', '.join(sorted(stores))}: {reason}")
        self.task = task
        self.stores = frozenset(stores)


class ValueRefused(Exception):
    """A serde refused a value that a record of `task` wrote earlier in the transaction: roll back,
    and serialise each value as it is written, so that the record is known."""

    def __init__(self, task: str, reason: str) -> None:
        super().__init__(
            f"task {task}: {reason}. It is processed again with each value serialised as it is "
            "written, which names the record"
        )
        self.task = task


class OutcomeUnknown(Exception):
    """A transaction call failed or timed out: whether it took effect must be read back."""
