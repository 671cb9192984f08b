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
from datetime import timedelta

from kio.schema.errors import ErrorCode

from streams.errors import StreamsError
from streams.membership.connection import (
    BrokerConnection,
    ConnectionLost,
    OpenConnection,
    build_entity,
    find_coordinator,
    load_request_classes,
)

log = logging.getLogger(__name__)

_METADATA_API_KEY, _INIT_PRODUCER_ID_API_KEY, _LIST_TRANSACTIONS_API_KEY = 3, 22, 66
_KEY_IS_TRANSACTIONAL_ID = 1
_NO_PRODUCER = -1
_TIMEOUT = timedelta(seconds=10)
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_ABORTED = (ErrorCode.none, ErrorCode.concurrent_transactions)
"""CONCURRENT_TRANSACTIONS: the coordinator is aborting the open transaction."""


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

    def abort_at_broker(address: tuple[str, int]) -> None:
        with closing(open_connection(address)) as connection:
            ids = [*_list_open_transactions(connection)]
        for each in ids:
            if thread_id.fullmatch(each) and each not in members and is_current():
                with _failures_logged(application_id):
                    _abort_transaction(open_connection, each)
                    aborted.append(each)

    with _failures_logged(application_id):
        for address in _list_brokers(open_connection):
            with _failures_logged(application_id):
                abort_at_broker(address)
    for each in aborted:
        log.info("aborted the transaction of %s, which is no member of its group any more", each)
    return aborted


@contextmanager
def _failures_logged(application_id: str) -> Iterator[None]:
    """Log a failed request instead of raising it, since the transactions end by their time-out."""
    try:
        yield
    except (ConnectionLost, StreamsError) as error:
        log.info("open transactions of %s are left to time out: %s", application_id, error)


def _list_brokers(open_connection: OpenConnection) -> list[tuple[str, int]]:
    """Return the addresses of all brokers of the cluster. Raises ConnectionLost."""
    with closing(open_connection(None)) as bootstrap:
        classes = load_request_classes(bootstrap, _METADATA_API_KEY, 9)
        request = build_entity(
            classes["MetadataRequest"],
            topics=(),
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
        )
        answer = bootstrap.send_request(request)
    return [(broker.host, broker.port) for broker in answer.brokers]


def _list_open_transactions(connection: BrokerConnection) -> Iterator[str]:
    """Yield the transactional ids with an open transaction, as far as they may be seen.

    A broker lists those that it coordinates, and that the user may describe (KIP-664).
    """
    classes = load_request_classes(connection, _LIST_TRANSACTIONS_API_KEY, 1)
    request = build_entity(
        classes["ListTransactionsRequest"],
        state_filters=("Ongoing",),
        producer_id_filters=(),
        duration_filter=_NO_PRODUCER,
    )
    answer = connection.send_request(request)
    if answer.error_code is not ErrorCode.none:
        raise ConnectionLost(f"transactions can't be listed: {answer.error_code.name}")
    for state in answer.transaction_states:
        yield state.transactional_id


def _abort_transaction(open_connection: OpenConnection, transactional_id: str) -> None:
    """Abort a transaction by a new epoch of its producer. Raises ConnectionLost."""
    with closing(open_connection(None)) as bootstrap:
        address = find_coordinator(
            bootstrap, transactional_id, key_type=_KEY_IS_TRANSACTIONAL_ID, operation="Write"
        )
    with closing(open_connection(address)) as connection:
        classes = load_request_classes(connection, _INIT_PRODUCER_ID_API_KEY, 4)
        request = build_entity(
            classes["InitProducerIdRequest"],
            transactional_id=transactional_id,
            transaction_timeout=_TIMEOUT,
            producer_id=_NO_PRODUCER,
            producer_epoch=_NO_PRODUCER,
        )
        code = connection.send_request(request).error_code
    if code not in _ABORTED:
        raise ConnectionLost(f"{transactional_id}: {code.name}")
