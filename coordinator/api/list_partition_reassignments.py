"""Handles ListPartitionReassignments, which finds none: there is no other broker.

Behaviour: no partition is ever being reassigned, whatever is requested (KIP-455).
Versions: 0.
Simplifications: none.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import Context
from coordinator.errors import Code

API_KEY = 46
VERSIONS = range(1)


def handle(request: Any, context: Context) -> Any:
    return refuse(request, context, Code.NONE)


def refuse(request: Any, context: Context, code: Code) -> Any:
    return context.reply(error_code=code, error_message=None, topics=())
