"""Handles AddOffsetsToTxn, which adds a group's offsets to a transaction.

Behaviour: registers the partition of `__consumer_offsets` that a group's offsets are kept in.
Versions: v2 PRODUCER_FENCED; v3 flexible; v4 TRANSACTION_ABORTABLE, never the answer here.
Simplifications: none.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import Context
from coordinator.api.coordinator_codes import fenced_code
from coordinator.coordinators import GROUP_TOPIC
from coordinator.errors import Code
from coordinator.transactions.add_partitions import AddPartitions

API_KEY = 25
VERSIONS = range(5)


def handle(request: Any, context: Context) -> Any:
    coordinators = context.broker.coordinators
    partition = (GROUP_TOPIC, coordinators.groups.partition_of(request.group_id))
    coordinators.transactions.add_partitions(
        AddPartitions(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            frozenset((partition,)),
        )
    )
    return context.reply()


def refuse(request: Any, context: Context, code: Code) -> Any:
    return context.reply(error_code=fenced_code(code, context.version, fenced_since=2))
