"""Handle ListTransactions, which lists the transactional ids that pass all filters.

Behaviour: lists every transactional id that passes all filters, and the state names in the filters
that don't exist. COORDINATOR_LOAD_IN_PROGRESS while a shard is being loaded.
Versions: v1 how long a transaction has been open (KIP-994); v2 a pattern of ids, in RE2's syntax,
that has to match all of an id (KIP-1152); INVALID_REGULAR_EXPRESSION for one that RE2 can't read.
Simplifications: none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from coordinator.api.context import RequestContext
from coordinator.errors import Code, Refused
from coordinator.transactions.listing import TransactionFilters
from coordinator.transactions.state import STATUS_NAMES

if TYPE_CHECKING:
    from kio.schema.list_transactions.v2.request import ListTransactionsRequest
    from kio.schema.list_transactions.v2.response import ListTransactionsResponse

API_KEY = 66
VERSIONS = range(3)


def handle_request(
    request: ListTransactionsRequest, context: RequestContext[ListTransactionsResponse]
) -> ListTransactionsResponse:
    pattern = getattr(request, "transactional_id_pattern", None)
    filters = TransactionFilters(
        state_names=request.state_filters,
        producer_ids=frozenset(request.producer_id_filters),
        duration_ms=getattr(request, "duration_filter", -1),
        matches=_compile_pattern(pattern) if pattern else None,
    )
    transactions = context.services.coordinators.transactions.list_transactions(filters)
    return context.build_response(
        unknown_state_filters=filters.unknown_state_names,
        transaction_states=[
            {
                "transactional_id": transaction.transactional_id,
                "producer_id": transaction.producer_id,
                "transaction_state": STATUS_NAMES[transaction.status],
            }
            for transaction in transactions
        ],
    )


def build_error_response(
    request: ListTransactionsRequest, context: RequestContext[ListTransactionsResponse], code: Code
) -> ListTransactionsResponse:
    return context.build_response(error_code=code, unknown_state_filters=(), transaction_states=())


def _compile_pattern(pattern: str) -> Callable[[str], object]:
    import re2  # imported only for requests with a pattern

    options = re2.Options()
    options.log_errors = False
    try:
        matches: Callable[[str], object] = re2.compile(pattern, options=options).fullmatch
    except re2.error as error:
        raise Refused(Code.INVALID_REGULAR_EXPRESSION, f"{pattern!r}: {error}") from error
    return matches
