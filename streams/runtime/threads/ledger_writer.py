"""Write the ledger: one record in each transaction that says what the transaction read and wrote.

`streams.ledger` defines its format. Where a record was written is known from its delivery report;
with a ledger each record has one that Python sees, which is what the ledger costs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from streams.errors import OutcomeUnknown, TaskMigrated
from streams.ledger import LedgerTransaction, encode_order, encode_transaction
from streams.membership.connection import ConnectionLost
from streams.membership.producer_identity import ProducerIdentity, UnknownTransactionalId
from streams.runtime.clients import translate_produce_error
from streams.runtime.clients.interfaces import ProducerClient
from streams.runtime.tasks.task import Task

_PARTITION = 0
"""The only partition of the ledger."""
ORDER_BYTES_MAX = 256 << 10
"""How much of a record of the ledger orders and look-ups may take: brokers refuse 1 MB."""


class LedgerOrders(NamedTuple):
    """Represents in which order tasks took their records, as the ledger encodes it, by task."""

    orders: dict[str, str]
    lookups: dict[str, dict[str, str]]
    """The states in which their steps found global tables, by step."""


class LedgerWriter:
    """Writes one record to the ledger in each transaction.

    `fetch_identity` returns the id and epoch of the producer with a transactional id; raises
    ConnectionLost, UnknownTransactionalId.
    """

    def __init__(self, topic: str, fetch_identity: Callable[[str], ProducerIdentity]) -> None:
        self._topic = topic
        self._fetch_identity = fetch_identity

    def write_transaction(self, producer: ProducerClient, tasks: Collection[Task]) -> None:
        """Write the ledger record of the running transaction: the offsets `tasks` read and wrote.

        All that they wrote is delivered, and they will commit their offsets as they are. Raises
        OutcomeUnknown, or TaskMigrated for an idle producer that its coordinator has forgotten.
        """
        assert producer.delivered_offsets is not None, (
            "a producer that keeps no account of what it writes"
        )
        written = producer.delivered_offsets.pop_offset_runs()
        try:
            if producer.identity is None:  # the same for as long as the producer lives
                producer.identity = self._fetch_identity(producer.name)
        except ConnectionLost as error:
            raise OutcomeUnknown(f"the identity of {producer.name}: {error}") from error
        except UnknownTransactionalId as error:
            # As INVALID_PRODUCER_ID_MAPPING, which the producer would meet next: a new one goes on.
            raise TaskMigrated(f"{error} (transactional.id.expiration.ms)") from error
        inputs = {
            task.name: {partition: held.offset for partition, held in task.committable_offsets()}
            for task in tasks
        }
        commits = {task.name: task.commit_number for task in tasks}
        topic_ids = {topic: each for task in tasks for topic, each in task.topic_ids.items()}
        orders, lookups = _pop_record_orders_and_lookups(tasks)
        value = encode_transaction(
            LedgerTransaction(
                *producer.identity, inputs, written, commits, topic_ids, orders, lookups
            )
        )
        key = producer.name.encode()
        # The record has a delivery report of its own, so that it is not among the records of the
        # next transaction.
        try:
            producer.produce(self._topic, value, key, _PARTITION, _ignore_delivery)
        except Exception as error:
            raise translate_produce_error(error, self._topic, self._topic) or error from error


def _pop_record_orders_and_lookups(
    tasks: Collection[Task],
) -> LedgerOrders:
    """Take the order of each task's records since the last commit, and what its steps looked up."""
    orders: dict[str, str] = {}
    lookups: dict[str, Mapping[str, str]] = {}
    for task in tasks:
        runs = task.buffered_records.pop_record_order()
        states = task.steps.context.pop_lookup_states()
        if runs is not None:
            orders[task.name] = encode_order(runs)
            lookups[task.name] = states
    return limit_orders_to_bytes(orders, lookups, ORDER_BYTES_MAX)


def limit_orders_to_bytes(
    orders: Mapping[str, str], lookups: Mapping[str, Mapping[str, str]], bytes_max: int
) -> LedgerOrders:
    """Return the orders of tasks, and the states of their steps, that fit into a record together.

    States get what room the orders leave: an order also determines what comes of steps that look
    nothing up. Those of a task whose order has no room would tell nothing, and are left out.
    """
    room = bytes_max
    fitting_orders: dict[str, str] = {}
    for task, order in orders.items():
        if len(order) <= room:
            fitting_orders[task] = order
            room -= len(order)
    fitting_lookups: dict[str, dict[str, str]] = {}
    for task in fitting_orders:
        for step, states in lookups[task].items():
            if len(states) <= room:
                fitting_lookups.setdefault(task, {})[step] = states
                room -= len(states)
    return LedgerOrders(fitting_orders, fitting_lookups)


def _ignore_delivery(error: Any, message: Any) -> None:
    """Ignore a delivery report: the transaction's end says whether its records were written."""
