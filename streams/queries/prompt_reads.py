"""Answer look-ups at once, on the thread that serves, where nothing has to be waited for.

RocksDB's binding keeps Python's interpreter to itself while it reads: a look-up on another thread
lets nobody go on that one on this thread would keep. Beside a busy stream thread each change of
threads costs more than the look-up itself.

a look-up that                                       is left to the read threads because
another worker has to answer (one row of it is       the network is waited for
    asked for by `prompt_routes`), or several
may find its task's commit half written              the commit is waited for
is the first one since tasks have moved, or names    a broker is asked for partitions
    a partition that is not known
may be answered by standbys                          brokers are asked for ends of changelogs
has a serde that is not one of this package's own    the serde may wait for whatever it likes
may have several rows, as all windows of a key       it takes longer
"""

from __future__ import annotations

from streams import serdes
from streams.errors import StoreUnavailable
from streams.graph.nodes import StoreSpec
from streams.queries.position_bounds import (
    PositionNotReached,
    check_position_topics,
    require_position_reached,
)
from streams.queries.request_terms import RequestTerms
from streams.queries.routed_reads import RoutedReads
from streams.queries.store_answers import StoreAnswer
from streams.queries.store_locations import StoreLocations
from streams.queries.store_reads import StoreRead, check_read_fits_store

_PROMPT_SERDES = (
    serdes.bytes,
    serdes.string,
    serdes.int32,
    serdes.int64,
    serdes.float64,
    serdes.json,
)


class PromptReads:
    """Reads one row of this worker's tasks without waiting for anything."""

    def __init__(self, reads: RoutedReads) -> None:
        self._local = reads.local
        self._has_prompt_serdes: dict[str, bool] = {}
        """This holds by store whether its keys and values are read by what waits for nothing."""

    def find_prompt_answer(self, terms: RequestTerms, read: StoreRead) -> StoreAnswer | None:
        """Return the answer to a look-up, or None if it can't be known at once.

        Raises PositionNotReached for a read of this worker's tasks alone, ConfigError, SerdeError.
        """
        local = self._local
        if (locations := self._find_locations_of_row(terms, read)) is None:
            return None
        spec, sub = local.find_store(terms.store)
        check_read_fits_store(spec, read)
        if not terms.is_local:
            partition = local.find_partition(terms.store, read.key, locations)
        elif terms.partitions is not None and len(terms.partitions) == 1:
            [partition] = terms.partitions
        else:
            return self._read_own_partitions(terms, read, locations)
        if terms.at_least:
            check_position_topics(terms.store, sub, terms.at_least)
        if (answer := local.read_row(terms.store, read, partition)) is None:
            return None
        try:
            require_position_reached(
                terms.store, answer.position, answer.partitions, terms.at_least
            )
        except PositionNotReached:
            if terms.is_local:
                raise
            return None
        # A key that is not in the partition where it belongs may be in any other one.
        return answer if answer.rows or terms.is_local else None

    def _read_own_partitions(
        self, terms: RequestTerms, read: StoreRead, locations: StoreLocations
    ) -> StoreAnswer | None:
        """Return what this worker has of a key in several partitions.

        None if that can't be known at once. Raises PositionNotReached, ConfigError, SerdeError.
        """
        try:
            return self._local.read(
                terms.store,
                read,
                at_least=terms.at_least,
                partitions=terms.partitions,
                attempts_s=0.0,
                locations=locations,
            )
        except PositionNotReached:
            raise
        except StoreUnavailable:
            return None

    def find_partition_elsewhere(self, terms: RequestTerms, read: StoreRead) -> int | None:
        """Return the partition of a key, or None if it is here or that can't be known at once."""
        local = self._local
        if (locations := self._find_locations_of_row(terms, read)) is None:
            return None
        partition = local.find_partition(terms.store, read.key, locations)
        own = local.list_own_partitions(terms.store, with_standbys=False)
        return None if partition in own else partition

    def _find_locations_of_row(self, terms: RequestTerms, read: StoreRead) -> StoreLocations | None:
        """Return where a store's partitions are, or None if a read can't be answered at once.

        None too for what may have several rows, or be answered by standbys.
        """
        spec, _ = self._local.find_store(terms.store)
        if terms.stale_ok is not None or not read.has_one_row(spec):
            return None
        if not self._may_read_rows(spec):
            return None
        return self._local.find_known_locations(terms.store, terms.at_least)

    def _may_read_rows(self, spec: StoreSpec) -> bool:
        """Return whether a store's keys and values are read by functions that wait for nothing."""
        if (found := self._has_prompt_serdes.get(spec.name)) is None:
            found = self._has_prompt_serdes[spec.name] = _has_prompt_serdes(spec)
        return found

    def check_position(self, terms: RequestTerms, read: StoreRead) -> None:
        """Raise PositionNotReached if that is known at once of a read of this worker's tasks.

        A position in partitions that are not known is left to the threads, as are reads that have
        none. Raises ConfigError for a read that the store can't answer.
        """
        if not terms.is_local or not terms.at_least:
            return
        local = self._local
        spec, _ = local.find_store(terms.store)
        check_read_fits_store(spec, read)
        if local.find_known_locations(terms.store, terms.at_least):
            local.check_positions(terms.store, terms.at_least, terms.partitions)


def _has_prompt_serdes(spec: StoreSpec) -> bool:
    """Return whether keys and values are read by functions that wait for nothing."""
    # By identity: a serde is equal to others, and hashed, by functions that the user may give.
    return all(
        any(serde is prompt for prompt in _PROMPT_SERDES) for serde in (spec.key, spec.value)
    )
