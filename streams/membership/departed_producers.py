"""Abort the transactions of an application's stream threads that have left its group.

A thread that was killed leaves its transaction open. Whoever takes its tasks over waits until that
has ended, since records of the changelogs and offsets may yet be committed: by itself it ends after
`transaction_timeout_ms`, and at the broker's next look at such transactions (10 s). A producer with
the same transactional id, which is that of the thread's member, ends it at once (KIP-360). That
takes nothing from a thread that is alive but lost its membership: its group refuses its commits.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager

from streams.common.addresses import Address
from streams.errors import StreamsError
from streams.membership.connection import ConnectionLost, OpenConnection
from streams.membership.transactions import (
    abort_transaction,
    list_brokers,
    list_transactional_ids,
)

log = logging.getLogger(__name__)

_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


def abort_departed_transactions(
    open_connection: OpenConnection,
    application_id: str,
    members: Collection[str],
    is_current: Callable[[], bool] = lambda: True,
) -> list[str]:
    """Abort open transactions of the application's threads that are none of `members`.

    `members` are the instance ids of the group's members, which are their transactional ids with
    `exactly_once_v2`. Nothing more is aborted once `is_current` returns false: there may be members
    that are not among them. Returns the transactional ids whose transactions were aborted; what
    can't be aborted now is logged, and ends by its time-out.
    """
    thread_id = re.compile(f"{re.escape(application_id)}-{_UUID}-[0-9]+")
    aborted: list[str] = []

    def abort_at_broker(address: Address) -> None:
        with closing(open_connection(address)) as connection:
            ids = [*list_transactional_ids(connection, ("Ongoing",))]
        for each in ids:
            if thread_id.fullmatch(each) and each not in members and is_current():
                with _log_failures(application_id):
                    abort_transaction(open_connection, each)
                    aborted.append(each)

    with _log_failures(application_id):
        for address in list_brokers(open_connection):
            with _log_failures(application_id):
                abort_at_broker(address)
    for each in aborted:
        log.info("aborted the transaction of %s, which is no member of its group any more", each)
    return aborted


@contextmanager
def _log_failures(application_id: str) -> Iterator[None]:
    """Log a failed request instead of raising it, since the transactions end by their time-out."""
    try:
        yield
    except (ConnectionLost, StreamsError) as error:
        log.info("open transactions of %s are left to time out: %s", application_id, error)
