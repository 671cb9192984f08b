"""Results: a window's new value goes on, at once or with caching at the commit.

Results of sessions have the end of their session as timestamp, and at once they go without headers,
which a result at the commit has from the record that made it. So it is in Kafka Streams
(KStreamSessionWindowAggregate, SessionCacheFlushListener).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from state.entry import SCALARS, Entry
from state.windowed import Windowed
from streams.operators.copies import Copied, keys_for_those_after
from streams.operators.held import held_back
from streams.processor.record import Rewritten
from streams.topology.nodes import Binding
from streams.topology.views import View

Result = Callable[[Entry[Windowed[Any], Any], Any, int], None]
"""A window's entry, its old value where one is sent, and the timestamp of the result in ms."""


def results(
    at: Binding, view: View, store: Any, emitted: Copied, *, sessions: bool = False
) -> Result:
    """What passes on the windows of `view`, which are in `store`."""
    assert view.spec is not None
    context, downstream, sends_old = at.context, at.downstream, view.sends_old
    if view.spec.caching:
        held = held_back(at, store, view, emitted, at_end=sessions)

        def hold(entry: Entry[Windowed[Any], Any], was: Any, time_ms: int) -> None:
            held.pop(entry, None)
            held[entry] = context.message

        return hold

    own_key = keys_for_those_after(at, view.spec)

    def pass_on(entry: Entry[Windowed[Any], Any], was: Any, time_ms: int) -> None:
        window = entry.key
        if type(window.key) not in SCALARS:
            window = own_key(window)
        downstream(window, emitted(entry.value), was if sends_old else None, time_ms, True)

    def pass_on_bare(entry: Entry[Windowed[Any], Any], was: Any, time_ms: int) -> None:
        message = context.message
        context.message = None if message is None else Rewritten(message, ())
        try:
            pass_on(entry, was, time_ms)
        finally:
            context.message = message

    return pass_on_bare if sessions else pass_on
