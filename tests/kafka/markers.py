"""Wait until a Kafka node can be killed without losing what it has called committed.

A node of Kafka that is killed before it has written the markers of a commit may leave them out
when it starts again: its partitions have no leader until it is let in, and a marker for such a
partition is taken to be of a deleted topic (TransactionMarkerChannelManager, "Couldn't find leader
endpoint"). The transaction is then complete, and the next abort of its producer hides its records.
"""

from __future__ import annotations

from tests.conformance.transactions import list_transactions
from tests.conformance.wire import Client
from tests.processes import wait_until

_ENDING = ("PrepareCommit", "PrepareAbort")


def wait_for_markers(servers: str) -> None:
    """Wait until every transaction that has ended has its markers."""
    with Client(servers) as client:
        wait_until(
            lambda: not list_transactions(client, state_filters=_ENDING),
            what="markers of a transaction",
        )
