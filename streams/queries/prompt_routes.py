"""Pass a look-up on to the worker that has its key, on the thread that serves.

It is one attempt to have the row from the worker that should have it. What is not found there, may
be elsewhere, moves, or is answered by standbys is left to the read threads, which look anew at who
has what.
"""

from __future__ import annotations

from streams.errors import UserError
from streams.queries.prompt_reads import PromptReads
from streams.queries.request_terms import RequestTerms
from streams.queries.routed_reads import ATTEMPT_S, RoutedReads
from streams.queries.store_answers import StoreAnswer
from streams.queries.store_reads import StoreRead

_WAIT_MIN_S = 0.01
"""The seconds below which nobody is asked: the answer would come to nobody, and what ends without
one takes its connection with it."""


class PromptRoutes:
    """Asks other workers for one row, without a thread."""

    def __init__(self, reads: RoutedReads, prompt_reads: PromptReads) -> None:
        self._reads = reads
        self._prompt_reads = prompt_reads

    async def find_routed_answer(self, terms: RequestTerms, read: StoreRead) -> StoreAnswer | None:
        """Return the answer of the worker that has the key, or None if it is to be sought.

        It has half of the time: so there is a second attempt.
        """
        if terms.is_local or terms.wait_s < _WAIT_MIN_S or self._reads.is_stopping:
            return None
        if (partition := self._prompt_reads.find_partition_elsewhere(terms, read)) is None:
            return None
        endpoint = self._reads.local.find_active_endpoint(terms.store, partition)
        if endpoint is None or endpoint == self._reads.own_endpoint:
            return None
        spec, _ = self._reads.local.find_store(terms.store)
        try:
            answer = await self._reads.get_client().read_on_loop(
                endpoint,
                spec,
                read,
                partitions=(partition,),
                at_least=terms.at_least,
                timeout_s=min(terms.wait_s / 2, ATTEMPT_S),
            )
        except UserError:
            return None
        return answer if answer.rows and partition in answer.partitions else None
