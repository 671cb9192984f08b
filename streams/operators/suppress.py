"""Suppress: a table's updates wait in a buffer, and only the last of a key goes on.

An update goes on when the table's own time, the largest timestamp of an update so far, has passed
the time at which it was to leave, or earlier if the buffer is full. An update of a key that waits
takes the place of the one before, and leaves when that one would have. The old value that goes with
it is the last that went on: Kafka Streams gives that of the last update, which those after have not
seen (docs/decisions/0023).

Rules: KTableSuppressProcessorSupplier, TimeDefinitions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from state.buffer import BufferStore
from state.entry import ValueAndTimestamp
from streams.errors import StreamsError
from streams.operators.idle import when_idle
from streams.operators.recalled import Recalled, origin_of
from streams.topology.nodes import Binding, Operator, StoreSpec, Update
from streams.topology.views import Found, Get, GetAsOf, View

_NO_TIMESTAMP_MS = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """How long updates wait, and how many may. Times in ms, sizes as `state.buffered.size_of`."""

    wait_ms: int
    until_window_ends: bool
    """They wait from the end of their window on, else from their timestamp; and a deletion, of a
    window that nobody has seen, is passed over."""
    max_records: int | None
    max_bytes: int | None
    emits_early: bool
    """A full buffer lets the first go; else it ends the application."""
    idle_close_ms: int | None = None
    """After so long without an update time goes on by the wall clock; None: never."""


class SuppressedView:
    """A table as those see it who are behind its buffer: of a key that waits they know the value
    from before, without its timestamp."""

    def __init__(self, parent: View, buffer: StoreSpec) -> None:
        self.spec: StoreSpec | None = None
        self.sends_old = True
        self._parent = parent
        self._buffer = buffer

    def send_old(self, *, force: bool = True) -> bool:
        return True

    def read_from(self) -> list[str]:
        return [self._buffer.name, *self._parent.read_from()]

    def get(self, at: Binding) -> Get:
        waiting = at.context.store(self._buffer.name).waiting
        of_parent = self._parent.get(at)
        encode_key, decode = self._buffer.key.serialize, self._buffer.value.deserialize

        def get(key: Any) -> Found:
            change = waiting(encode_key(key))
            if change is None:
                return of_parent(key)
            prior = change.prior
            return None if prior is None else ValueAndTimestamp(decode(prior), _NO_TIMESTAMP_MS)

        return get

    @property
    def is_versioned(self) -> bool:
        return False

    @property
    def expires_in(self) -> str | None:
        return self._parent.expires_in

    def get_as_of(self, at: Binding) -> GetAsOf:
        raise NotImplementedError("a suppressed table has no history")


def suppress(spec: StoreSpec, waiting: Waiting) -> Operator:
    def bind(at: Binding) -> Update:
        context, failed = at.context, at.failed
        buffer: BufferStore = context.store(spec.name)
        encode_key, encode = spec.key.serialize, spec.value.serialize
        wait_ms, until_window_ends = waiting.wait_ms, waiting.until_window_ends
        let_first_go = _letting_go(at, spec, waiting)
        keep_within = _limit(at, buffer, waiting, let_first_go)
        time, put = context.step_time(at.step), buffer.put

        def let_go() -> None:
            while buffer.first_ms <= time.ms - wait_ms:
                let_first_go()

        def process(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
            try:
                leaves_ms = key.end_ms if until_window_ends else timestamp_ms
                key_bytes = encode_key(key)
                old_bytes = None if old is None else encode(old)
                new_bytes = None if new is None else encode(new)
            except Exception as error:
                failed(error, key, new)
                return
            if timestamp_ms > time.ms:
                time.ms = timestamp_ms
            message = context.message
            origin = origin_of(message, timestamp_ms)
            first_ms = put(key_bytes, leaves_ms, old_bytes, new_bytes, origin)
            if first_ms <= time.ms - wait_ms:
                let_go()
            if keep_within is not None:
                keep_within()
            context.message = message

        if waiting.idle_close_ms is None:
            return process
        return _while_open(at, waiting.idle_close_ms, wait_ms, let_go, process)

    return bind


def _while_open(
    at: Binding, idle_ms: int, wait_ms: int, let_go: Callable[[], None], process: Update
) -> Update:
    """`process` for windows that are open; where no updates come the wall clock closes them."""
    context, time = at.context, at.context.step_time(at.step)

    def pass_time(time_ms: int) -> None:
        time.ms = time_ms
        message = context.message
        let_go()
        context.message = message

    arrives = when_idle(at, idle_ms, time, pass_time, _nothing_more)

    def process_if_open(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
        arrives(key, new, timestamp_ms)
        if key.end_ms <= time.ms - wait_ms:  # the steps above have no such time
            context.dropped += 1
            context.late += 1
            return
        process(key, new, old, timestamp_ms, latest)

    return process_if_open


def _nothing_more(key: Any, value: Any, timestamp_ms: int) -> None:
    """Whoever says that an update came goes on itself."""


def _letting_go(at: Binding, spec: StoreSpec, waiting: Waiting) -> Callable[[], None]:
    context, downstream = at.context, at.downstream
    buffer: BufferStore = context.store(spec.name)
    decode_key, decode = spec.key.deserialize, spec.value.deserialize
    drops_deletions = waiting.until_window_ends

    def let_first_go() -> None:
        key, (prior, _, new, origin) = buffer.first()
        if new is not None or not drops_deletions:
            context.message = Recalled(origin)
            downstream(
                decode_key(key),
                None if new is None else decode(new),
                None if prior is None else decode(prior),
                origin.timestamp_ms,
                True,
            )
        buffer.remove_first()

    return let_first_go


def _limit(
    at: Binding, buffer: BufferStore, waiting: Waiting, let_first_go: Callable[[], None]
) -> Callable[[], None] | None:
    """What is called when something was buffered: makes room, or refuses to go on. None: there is
    room for everything."""
    if waiting.max_records is None and waiting.max_bytes is None:
        return None
    records_max = float("inf") if waiting.max_records is None else waiting.max_records
    bytes_max = float("inf") if waiting.max_bytes is None else waiting.max_bytes

    def make_room() -> None:
        while buffer.records > records_max or buffer.size_bytes > bytes_max:
            let_first_go()

    def refuse() -> None:
        if buffer.records > records_max or buffer.size_bytes > bytes_max:
            raise StreamsError(
                f"the buffer of step {at.step!r} is full: {buffer.records} records "
                f"(max_records={waiting.max_records}) and {buffer.size_bytes} bytes "
                f"(max_bytes={waiting.max_bytes}), and what waits may not go on early. Give it "
                "more room, or shorter windows or less grace; with until_time_limit "
                'when_full="emit_early" lets the oldest go'
            )

    return make_room if waiting.emits_early else refuse
