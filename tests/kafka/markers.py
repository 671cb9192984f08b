"""Kill a Kafka node without losing what it has called committed.

A node of Kafka that is killed before it has written the markers of a commit may leave them out
when it starts again: its partitions have no leader until it is let in, and a marker for such a
partition is taken to be of a deleted topic (TransactionMarkerChannelManager, "Couldn't find leader
endpoint"). The transaction is then complete, and the next abort of its producer hides its records.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

from coordinator.log.batch import iterate_batches
from coordinator.transactions.records import TransactionCodec
from coordinator.transactions.state import PREPARED, TransactionSaved, TransactionStatus
from tests.brokers import Broker
from tests.conformance.transactions import list_transactions
from tests.conformance.wire import Client
from tests.kafka.server import RealKafka
from tests.processes import wait_until

_ENDING = ("PrepareCommit", "PrepareAbort")


def wait_for_markers(servers: str) -> None:
    """Wait until every transaction that has ended has its markers."""
    with Client(servers) as client:
        wait_until(
            lambda: not list_transactions(client, state_filters=_ENDING),
            what="markers of a transaction",
        )


def kill_between_markers(broker: Broker) -> None:
    """Kill a broker with SIGKILL, a node of Kafka at a moment when it owes no markers.

    Others may go on writing to it: it is stopped, and its log of transactions is read.
    """
    if isinstance(broker, RealKafka):
        wait_until(lambda: _stop_if_settled(broker), what="markers of a transaction")
    broker.kill()


def _stop_if_settled(node: RealKafka) -> bool:
    """Stop a node, unless it has yet to write markers, and return whether it is stopped."""
    os.kill(node.pid, signal.SIGSTOP)
    wait_until(lambda: _is_stopped(node.pid), what="the node to stop")
    if PREPARED.isdisjoint(_read_statuses(node.data_dir).values()):
        return True
    os.kill(node.pid, signal.SIGCONT)
    return False


def _is_stopped(pid: int) -> bool:
    """Return whether all threads of a process are stopped."""
    threads = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    return all(text.rpartition(") ")[2].startswith("T") for text in threads)


def _read_statuses(data_dir: Path) -> dict[str, TransactionStatus]:
    """Return the last status of each transactional id in a node's log of transactions."""
    codec = TransactionCodec(lambda: 2)
    statuses: dict[str, TransactionStatus] = {}
    for segment in sorted(data_dir.glob("__transaction_state-*/*.log")):
        for batch in iterate_batches(segment.read_bytes()):
            if batch.is_control:
                continue
            for record in batch.iterate_records():
                saved = codec.decode_record(record.key, record.value)
                if isinstance(saved, TransactionSaved):
                    statuses[saved.transaction.transactional_id] = saved.transaction.status
    return statuses
