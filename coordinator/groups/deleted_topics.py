"""The offsets of deleted topics are forgotten, in slices; then their names may be used again.

All topics that are deleted while one sweep of the groups is going on share the next. A shard that
is being loaded forgets them when that is done. `topics.json` has the names until all shards have,
so that a broker that was killed in between begins again when it starts: else a topic made under
such a name would have its groups go on at offsets of the old one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from coordinator.groups.offsets import GroupOffsets
from coordinator.shard.slices import Sliced, SlicedWork


class DeletedTopics:
    """Forgets the offsets of topics, and tells who waits for it."""

    def __init__(
        self, offsets: GroupOffsets, sliced: SlicedWork, forgotten: Callable[[str], None]
    ) -> None:
        """`forgotten` is called with each topic's name when no group has offsets of it any more."""
        self._offsets = offsets
        self._sliced = sliced
        self._forgotten = forgotten
        self._names: set[str] = set()  # for the next sweep
        self._swept: set[str] = set()  # but for shards that were not active
        offsets.forget_topics = self.forget
        self._is_running = False
        self._waiting: list[Callable[[Exception | None], None]] = []

    def forget(self, names: Iterable[str]) -> None:
        """Forget the offsets of these topics; where they are few, before this returns."""
        self._names.update(names)
        if self._names and not self._is_running:
            self._is_running = True
            self._sliced.run(self._forget_all(), self._ended)

    def wait(self, callback: Callable[[Exception | None], None]) -> None:
        """Call back when nothing is left to be forgotten, or with what came between; at once, if
        nothing is."""
        if self._is_running:
            self._waiting.append(callback)
        else:
            callback(None)

    def _forget_all(self) -> Sliced[None]:
        while self._names:
            names, self._names = self._names, set()
            yield from self._offsets.forget_topics_in_slices(names)
            self._swept |= names
            self._free_names()

    def _free_names(self) -> None:
        for name in sorted(self._swept):
            if name not in self._names and not self._offsets.has_still_to_forget(name):
                self._swept.discard(name)
                self._forgotten(name)

    def _ended(self, outcome: Exception | None) -> None:
        self._is_running = False
        waiting, self._waiting = self._waiting, []
        if outcome is not None and not waiting:
            raise outcome
        for callback in waiting:
            callback(outcome)
