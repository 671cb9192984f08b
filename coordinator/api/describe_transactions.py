"""DescribeTransactions.

Behaviour: state, owner, time-out, start and partitions of each transactional id that is asked for;
42 for an empty one, 105 for one that isn't known, 14 and 16 for one whose shard isn't there.
Partitions are those that still wait for a marker once the outcome is decided.
Versions: only v0.
Simplifications: none.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from coordinator.api.context import Context
from coordinator.errors import Code, Refused
from coordinator.transactions.state import STATUS_NAMES

API_KEY = 65
VERSIONS = range(1)

# kio has a time here, and no way to say -1 but the millisecond before 1970.
_NEVER = datetime(1970, 1, 1, tzinfo=UTC) - timedelta(milliseconds=1)


def handle(request: Any, context: Context) -> Any:
    described = [_described(asked, context) for asked in request.transactional_ids]
    return context.reply(transaction_states=described)


def refuse(request: Any, context: Context, code: Code) -> Any:
    """The code for every id."""
    refused = [_refused(asked, code) for asked in request.transactional_ids]
    return context.reply(transaction_states=refused)


def _described(transactional_id: str, context: Context) -> dict[str, Any]:
    if not transactional_id:
        return _refused(transactional_id, Code.INVALID_REQUEST)
    transactions = context.broker.coordinators.transactions
    try:
        known = transactions.find(transactional_id)
    except Refused as refused:
        return _refused(transactional_id, refused.code)
    if known is None:
        return _refused(transactional_id, Code.TRANSACTIONAL_ID_NOT_FOUND)
    waiting = transactions.partitions_left(known)
    return {
        "error_code": Code.NONE,
        "transactional_id": transactional_id,
        "transaction_state": STATUS_NAMES[known.status],
        "transaction_timeout": known.timeout_ms,
        "transaction_start_time": _NEVER if known.start_ms < 0 else known.start_ms,
        "producer_id": known.producer_id,
        "producer_epoch": known.producer_epoch,
        "topics": [
            {"topic": topic, "partitions": [partition for _, partition in partitions]}
            for topic, partitions in groupby(sorted(waiting), key=lambda found: found[0])
        ],
    }


def _refused(transactional_id: str, code: Code) -> dict[str, Any]:
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
