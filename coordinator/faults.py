"""Inject faults: what a broker, a network and a disk do to a client, on demand.

    with EmbeddedBroker(topics={"words": 1}) as broker:
        lost = broker.faults.add(RequestFault("lose-answer", api="EndTxn", times=1))
        ...  # the client commits, gets no answer, and has to find out the outcome
        assert lost.struck == 1
        lost.remove()

A fault names what it does (`action`) and which requests or files it matches (an API, a client; a
topic, a file). Of its matches the first `after` are spared, then every `every`-th is struck, which
means that the action is done to it, at most `times` of them. The first rule that strikes decides;
the rules behind it don't count that match.

    request action   the request      the answer
    delay            takes effect     comes `delay_ms` later
    lose-request     has no effect    never comes
    lose-answer      takes effect     never comes
    cut-before       has no effect    the connection is closed instead
    cut-after        takes effect     the connection is closed instead
    error            has no effect    says `error`, in all its parts

Kafka answers a connection's requests in their order, so behind an answer that never comes no other
one comes either: the client's own time-out ends it, as with a network that swallows packets.

    disk action      what fails
    fail-append      a write to a file, before any of it is written: EIO
    fail-flush       an fsync: EIO
    full             the write that would need more than `bytes_left`: what fits is written, ENOSPC

Rules may be added and removed from any thread while the broker runs. Where no rule is set, a
request costs one attribute access more, and a file's calls go to the file itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import TypeAlias

from kio.schema.index import api_key_map

from coordinator.errors import Code

WritableByteCount: TypeAlias = int

MustFail: TypeAlias = bool

IsStruck: TypeAlias = bool

REQUEST_ACTIONS = frozenset(
    {"delay", "lose-request", "lose-answer", "cut-before", "cut-after", "error"}
)
DISK_ACTIONS = frozenset({"fail-append", "fail-flush", "full"})


class WrongFault(ValueError):
    """Signals an invalid fault; the message names the wrong field."""


def _normalise_api_name(name: str) -> str:
    return name.replace("_", "").casefold()


_API_KEYS = {_normalise_api_name(name): key for key, name in api_key_map.items()}


@dataclass(frozen=True, slots=True)
class RequestFault:
    """Describes what happens to requests that match; creating a wrong one raises WrongFault.

    `api`: Kafka's name or key of an API, None: any. `client_id`: the client's own, `*` and `?`
    stand for anything. `delay_ms` belongs to `delay`; `error`, a code or its name, to `error`.
    """

    action: str
    api: str | int | None = None
    client_id: str | None = None
    after: int = 0
    every: int = 1
    times: int | None = None
    delay_ms: int = 0
    error: int | str = 0
    api_key: int | None = field(init=False, default=None)
    code: Code = field(init=False, default=Code.NONE)

    def __post_init__(self) -> None:
        _check_action(self.action, REQUEST_ACTIONS)
        _check_counts(self.after, self.every, self.times)
        _check_text("client_id", self.client_id)
        object.__setattr__(self, "api_key", _resolve_api_key(self.api))
        object.__setattr__(self, "code", _resolve_code(self.error))
        _check_number("delay_ms", self.delay_ms, 0)
        if (self.action == "delay") != (self.delay_ms > 0):
            raise WrongFault(f"delay_ms={self.delay_ms} with {self.action}: belongs to delay")
        if (self.action == "error") != (self.code is not Code.NONE):
            raise WrongFault(f"error={self.error} with {self.action}: belongs to error")

    def matches_request(self, api_key: int, client_id: str) -> bool:
        return self.api_key in (None, api_key) and (
            self.client_id is None or fnmatchcase(client_id, self.client_id)
        )


@dataclass(frozen=True, slots=True)
class DiskFault:
    """Describes which calls on files fail; creating a wrong one raises WrongFault.

    `topic` and `partition` choose a partition's directory, `path` a pattern of the file's path
    from its end (`*.log`, `words-0/*`); without one a write or fsync has to be a `.log` file's,
    but a full disk is full for all. `bytes_left` belongs to `full`: so many bytes can be written;
    after `times` writes that had no room there is room again.
    """

    action: str
    topic: str | None = None
    partition: int | None = None
    path: str | None = None
    after: int = 0
    every: int = 1
    times: int | None = None
    bytes_left: int | None = None

    def __post_init__(self) -> None:
        _check_action(self.action, DISK_ACTIONS)
        _check_counts(self.after, self.every, self.times)
        _check_text("topic", self.topic)
        _check_text("path", self.path)
        if self.partition is not None:
            _check_number("partition", self.partition, 0)
            if self.topic is None:
                raise WrongFault(f"partition={self.partition} without a topic")
        if (self.action == "full") != (self.bytes_left is not None):
            raise WrongFault(f"bytes_left={self.bytes_left} with {self.action}: belongs to full")
        if self.bytes_left is not None:
            _check_number("bytes_left", self.bytes_left, 0)
            if self.after or self.every != 1:
                raise WrongFault("a full disk has bytes_left and times, but no after and no every")

    def matches_path(self, path: PurePath) -> bool:
        """Return whether this fault applies to calls on a file, given by its path."""
        if self.topic is not None:
            topic, _, partition = path.parent.name.rpartition("-")
            if topic != self.topic or self.partition not in (None, _parse_number(partition)):
                return False
        if self.path is not None:
            return path.match(self.path)
        return self.action == "full" or path.suffix == ".log"


Fault = RequestFault | DiskFault


class FaultRule:
    """Counts how often a fault that is set has matched (`met`) and how often it has struck."""

    def __init__(self, fault: Fault, remove: Callable[[FaultRule], None]) -> None:
        self.fault = fault
        self.met = 0
        self.struck = 0
        self.bytes_left: int = getattr(fault, "bytes_left", None) or 0
        self._remove = remove

    def remove(self) -> None:
        """Remove this fault; nothing happens if it is removed already."""
        self._remove(self)

    def count_match(self) -> IsStruck:
        """Count one more match and return whether the fault strikes it.

        Called under the lock of its `Faults`.
        """
        fault = self.fault
        self.met += 1
        turn = self.met - fault.after
        if turn <= 0 or turn % fault.every or self.is_spent:
            return False
        self.struck += 1
        return True

    def try_take_disk_space(self, size_bytes: int, path: PurePath) -> bool:
        """Take bytes for a file from the disk's space; return False if a full disk lacks them.

        True without counting for a fault that is no full disk, is spent, or doesn't match the path.
        """
        fault = self.fault
        if not isinstance(fault, DiskFault) or fault.action != "full":
            return True
        if self.is_spent or not fault.matches_path(path):
            return True
        self.met += 1
        if size_bytes > self.bytes_left:
            self.struck += 1
            return False
        self.bytes_left -= size_bytes
        return True

    @property
    def is_spent(self) -> bool:
        """Return whether the fault has struck as often as its `times` allows."""
        return self.fault.times is not None and self.struck >= self.fault.times


class Faults:
    """Holds the fault rules of one broker; its methods may be called from any thread."""

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        self.request_rules: tuple[FaultRule, ...] = ()  # empty for most brokers
        self.disk_rules: tuple[FaultRule, ...] = ()
        self._lock = threading.RLock()
        self._change_listeners: list[Callable[[], None]] = []
        self.replace(faults)

    def add(self, fault: Fault) -> FaultRule:
        """Set one more fault, behind those that are set, and return the rule that counts it."""
        rule = FaultRule(fault, self._remove_rule)
        with self._lock:
            self._set_rules((*self.request_rules, *self.disk_rules, rule))
        return rule

    def replace(self, faults: Iterable[Fault]) -> None:
        """Replace all faults by these, whose counts start at 0."""
        with self._lock:
            self._set_rules(tuple(FaultRule(fault, self._remove_rule) for fault in faults))

    def clear(self) -> None:
        """Remove all faults."""
        self.replace(())

    def add_change_listener(self, callback: Callable[[], None]) -> None:
        """Call `callback` after each change of the faults, on the thread that made the change."""
        with self._lock:
            self._change_listeners.append(callback)

    def match_request(self, api_key: int, client_id: str) -> RequestFault | None:
        """Count a request in the rules that match it; return the fault that strikes it, or None."""
        with self._lock:
            for rule in self.request_rules:
                fault = rule.fault
                assert isinstance(fault, RequestFault)
                if fault.matches_request(api_key, client_id) and rule.count_match():
                    return fault
        return None

    def count_disk_call(self, action: str, path: PurePath) -> MustFail:
        """Count a call on a file in the rules that match it; return whether the call fails."""
        with self._lock:
            for rule in self.disk_rules:
                fault = rule.fault
                assert isinstance(fault, DiskFault)
                if fault.action == action and fault.matches_path(path) and rule.count_match():
                    return True
        return False

    def take_disk_space(self, size_bytes: int, path: PurePath) -> WritableByteCount:
        """Return how many of the bytes may be written: fewer than all on a full disk."""
        with self._lock:
            for rule in self.disk_rules:
                if not rule.try_take_disk_space(size_bytes, path):
                    return rule.bytes_left
        return size_bytes

    def _remove_rule(self, rule: FaultRule) -> None:
        with self._lock:
            rules = (*self.request_rules, *self.disk_rules)
            self._set_rules(tuple(each for each in rules if each is not rule))

    def _set_rules(self, rules: tuple[FaultRule, ...]) -> None:
        self.request_rules = tuple(r for r in rules if isinstance(r.fault, RequestFault))
        self.disk_rules = tuple(r for r in rules if isinstance(r.fault, DiskFault))
        for callback in self._change_listeners:
            callback()


def _check_action(action: object, allowed: frozenset[str]) -> None:
    if not isinstance(action, str) or action not in allowed:
        raise WrongFault(f"action={action}: must be one of {', '.join(sorted(allowed))}")


def _check_counts(after: object, every: object, times: object) -> None:
    _check_number("after", after, 0)
    _check_number("every", every, 1)
    if times is not None:
        _check_number("times", times, 1)


def _check_number(name: str, value: object, low: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise WrongFault(f"{name}={value}: must be a whole number from {low} on")


def _check_text(name: str, value: object) -> None:
    if value is not None and (not isinstance(value, str) or not value):
        raise WrongFault(f"{name}={value!r}: must be text")


def _resolve_api_key(api: object) -> int | None:
    """Return the key of an API given by name or key, None for None, or raise WrongFault."""
    if api is None:
        return None
    key = _API_KEYS.get(_normalise_api_name(api)) if isinstance(api, str) else api
    if isinstance(key, bool) or not isinstance(key, int) or key not in api_key_map:
        raise WrongFault(f"api={api}: must be the name or key of an API, such as Produce or 0")
    return key


def _resolve_code(error: object) -> Code:
    """Return the error code given by name or number, or raise WrongFault."""
    try:
        if isinstance(error, str):
            return Code[error]
        return Code(error)  # type: ignore[arg-type]  # a file may have anything there
    except (KeyError, ValueError):
        raise WrongFault(f"error={error}: must be an error code or its name") from None


def _parse_number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None
