"""Pass a look-up on to the worker that has its key, on the thread that serves.

It is one attempt to have the row from the worker that should have it. What is not found there, may
be elsewhere, moves, or is answered by standbys is left to the read threads, which look anew at who
has what.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from streams.errors import UserError
from streams.queries.prompt_reads import PromptReads
from streams.queries.request_terms import RequestTerms
from streams.queries.routed_reads import ATTEMPT_S, RoutedReads
from streams.queries.store_answers import StoreAnswer
from streams.queries.store_reads import StoreRead

_WAIT_MIN_S = 0.01
"""The seconds below which nobody is asked: the answer would come to nobody, and what ends without
one takes its connection with it."""


class _Owner(NamedTuple):
    """Represents the worker that has a partition."""

    endpoint: str
    partition: int


class PromptRoutes:
    """Asks other workers for one row, without a thread."""

    def __init__(self, reads: RoutedReads, prompt_reads: PromptReads) -> None:
        self._reads = reads
        self._prompt_reads = prompt_reads

    async def find_routed_answer(self, terms: RequestTerms, read: StoreRead) -> StoreAnswer | None:
        """Return the answer of the worker that has the key, or None if it is to be sought.

        It has half of the time: so there is a second attempt.
        """
        if (owner := self._find_owner(terms, read)) is None:
            return None
        spec, _ = self._reads.local.find_store(terms.store)
        try:
            answer = await self._reads.get_client().read_on_loop(
                owner.endpoint,
                spec,
                read,
                partitions=(owner.partition,),
                at_least=terms.at_least,
                timeout_s=_limit_attempt_s(terms),
            )
        except UserError:
            return None
        return _require_row(answer, owner)

    def start_routed_look_up(
        self,
        terms: RequestTerms,
        read: StoreRead,
        on_answer: Callable[[StoreAnswer | None], None],
    ) -> bool:
        """Ask the worker that has the key without a task; return whether it was asked.

        `on_answer` is called later, with None if the answer is to be sought. Who was not asked may
        be asked by `find_routed_answer`, which opens a connection.
        """
        if (owner := self._find_owner(terms, read)) is None:
            return False
        spec, _ = self._reads.local.find_store(terms.store)
        return self._reads.get_client().start_read_on_loop(
            owner.endpoint,
            spec,
            read,
            partition=owner.partition,
            at_least=terms.at_least,
            timeout_s=_limit_attempt_s(terms),
            on_answer=lambda answer: on_answer(answer and _require_row(answer, owner)),
        )

    def _find_owner(self, terms: RequestTerms, read: StoreRead) -> _Owner | None:
        """Return who has a key, or None if that is this worker, or not known at once."""
        if terms.is_local or terms.wait_s < _WAIT_MIN_S or self._reads.is_stopping:
            return None
        if (partition := self._prompt_reads.find_partition_elsewhere(terms, read)) is None:
            return None
        endpoint = self._reads.local.find_active_endpoint(terms.store, partition)
        if endpoint is None or endpoint == self._reads.own_endpoint:
            return None
        return _Owner(endpoint, partition)


def _limit_attempt_s(terms: RequestTerms) -> float:
    """Return the seconds that an attempt may take."""
    return min(terms.wait_s / 2, ATTEMPT_S)


def _require_row(answer: StoreAnswer, owner: _Owner) -> StoreAnswer | None:
    """Return an answer that has the row, or None."""
    return answer if answer.rows and owner.partition in answer.partitions else None
