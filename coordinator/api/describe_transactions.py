"""Handle DescribeTransactions, which describes transactions by transactional id.

Behaviour: state, producer id and epoch, time-out, start and partitions of each requested id;
INVALID_REQUEST for an empty one, TRANSACTIONAL_ID_NOT_FOUND for an unknown one,
COORDINATOR_LOAD_IN_PROGRESS or NOT_COORDINATOR for one whose shard isn't available. Once the
outcome is decided, only partitions that still wait for a marker are listed.
Versions: only v0.
Simplifications: none.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any

from coordinator.api.context import RequestContext
from coordinator.errors import Code, Refused
from coordinator.transactions.state import STATUS_NAMES

if TYPE_CHECKING:
    from kio.schema.describe_transactions.v0.request import DescribeTransactionsRequest
    from kio.schema.describe_transactions.v0.response import DescribeTransactionsResponse

API_KEY = 65
VERSIONS = range(1)

# kio has a datetime here; -1 is the millisecond before 1970.
_NEVER = datetime(1970, 1, 1, tzinfo=UTC) - timedelta(milliseconds=1)


def handle_request(
    request: DescribeTransactionsRequest, context: RequestContext[DescribeTransactionsResponse]
) -> DescribeTransactionsResponse:
    described = [
        _describe_transaction(transactional_id, context)
        for transactional_id in request.transactional_ids
    ]
    return context.build_response(transaction_states=described)


def build_error_response(
    request: DescribeTransactionsRequest,
    context: RequestContext[DescribeTransactionsResponse],
    code: Code,
) -> DescribeTransactionsResponse:
    """Return a response with `code` for every transactional id."""
    refused = [
        _build_refused_transaction(transactional_id, code)
        for transactional_id in request.transactional_ids
    ]
    return context.build_response(transaction_states=refused)


def _describe_transaction(transactional_id: str, context: RequestContext) -> dict[str, Any]:
    if not transactional_id:
        return _build_refused_transaction(transactional_id, Code.INVALID_REQUEST)
    transactions = context.services.coordinators.transactions
    try:
        transaction = transactions.find_transaction(transactional_id)
    except Refused as refused:
        return _build_refused_transaction(transactional_id, refused.code)
    if transaction is None:
        return _build_refused_transaction(transactional_id, Code.TRANSACTIONAL_ID_NOT_FOUND)
    waiting = transactions.partitions_without_marker(transaction)
    return {
        "error_code": Code.NONE,
        "transactional_id": transactional_id,
        "transaction_state": STATUS_NAMES[transaction.status],
        "transaction_timeout": transaction.timeout_ms,
        "transaction_start_time": _NEVER if transaction.start_ms < 0 else transaction.start_ms,
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.producer_epoch,
        "topics": [
            {"topic": topic, "partitions": [partition for _, partition in partitions]}
            for topic, partitions in groupby(sorted(waiting), key=lambda found: found[0])
        ],
    }


def _build_refused_transaction(transactional_id: str, code: Code) -> dict[str, Any]:
    return {
        "error_code": code,
        "transactional_id": transactional_id,
        "transaction_state": "",
        "transaction_timeout": 0,
        "transaction_start_time": 0,
        "producer_id": 0,
        "producer_epoch": 0,
        "topics": (),
    }
