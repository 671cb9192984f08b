"""Combine stages, kinds of poison, handlers and guarantees, and say what is left out and why."""

from __future__ import annotations

from typing import NamedTuple

from tests.unit.streams.runtime.poison.committing import list_committing_places
from tests.unit.streams.runtime.poison.operating import (
    list_operator_places,
    list_other_operator_places,
)
from tests.unit.streams.runtime.poison.places import Place
from tests.unit.streams.runtime.poison.reading import list_reading_places
from tests.unit.streams.runtime.poison.storing import list_large_places, list_store_places
from tests.unit.streams.runtime.poison.writing import list_writing_places

STAGES = ("deserialise", "operate", "store", "serialise", "produce", "commit")
KINDS = (
    "refused value",
    "exception",
    "too large",
    "illegal topic",
    "unreadable header",
    "negative time",
    "null key",
    "undeclared type",
    "10 MB",
)
HANDLERS = ("fail", "skip", "dead_letter", "function")
GUARANTEES = ("exactly_once_v2", "exactly_once", "at_least_once")

_SIZE = "sizes are looked at where a record is produced"
_TOPIC = "a topic is chosen by a sink alone"
_HEADER = "headers go with the record, and are looked at where it is produced"
_TIME = "a record with a negative time is refused where it is made: source or processor"
LEFT_OUT = {
    ("deserialise", "illegal topic"): "what was read has a topic",
    ("deserialise", "undeclared type"): "bytes have no type: that is a refused value",
    ("operate", "too large"): _SIZE,
    ("operate", "10 MB"): _SIZE,
    ("operate", "illegal topic"): _TOPIC,
    ("store", "illegal topic"): _TOPIC,
    ("store", "unreadable header"): "stores keep no headers of records",
    ("store", "negative time"): _TIME,
    ("store", "null key"): "a step drops and counts such a record before its store: see operate",
    ("store", "exception"): "a store has one error for all that its serde raises: refused value",
    ("serialise", "too large"): _SIZE,
    ("serialise", "10 MB"): _SIZE,
    ("serialise", "illegal topic"): _TOPIC,
    ("serialise", "unreadable header"): _HEADER,
    ("serialise", "negative time"): _TIME,
    ("serialise", "null key"): "a sink writes records without a key",
    ("produce", "negative time"): _TIME,
    ("produce", "undeclared type"): "a producer is handed bytes alone",
    ("commit", "illegal topic"): "a sink behind a cache is the same function as any: see produce",
    ("commit", "unreadable header"): "a sink behind a cache is the same function: see produce",
    ("commit", "negative time"): _TIME,
    ("commit", "null key"): "a cache holds results by their key",
}
"""Pairs of a stage and a kind of poison that make no sense, or are another pair; and why."""


class Cell(NamedTuple):
    """Names one combination."""

    place: Place
    handler: str
    guarantee: str

    def __str__(self) -> str:
        place = self.place
        return f"{place.stage}: {place.kind}: {place.name}: {self.handler}: {self.guarantee}"


def list_places() -> list[Place]:
    """Return all places, each with an application of its own."""
    return [
        *list_reading_places(),
        *list_operator_places(),
        *list_other_operator_places(),
        *list_store_places(),
        *list_large_places(),
        *list_writing_places(),
        *list_committing_places(),
    ]


def list_cells() -> list[Cell]:
    """Return each place with each handler and each guarantee."""
    return [
        Cell(place, handler, guarantee)
        for place in list_places()
        for handler in HANDLERS
        for guarantee in GUARANTEES
    ]
