"""Read what the parameters of a request say of an answer, and say in headers as of when one is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from streams.queries.committed_reads import Position
from streams.queries.endpoint_client import (
    AGE_HEADER,
    LAG_HEADER,
    PARTITIONS_HEADER,
    POSITION_HEADER,
)
from streams.queries.http_parameters import WAIT_MS
from streams.queries.http_texts import (
    format_position,
    parse_partitions,
    parse_position,
    parse_stale_bounds,
)
from streams.queries.stale_bounds import StaleBounds
from streams.queries.store_answers import StoreAnswer


class RequestTerms(NamedTuple):
    """Holds which store a request reads, where, and what its answer has to fulfil."""

    store: str
    is_local: bool
    partitions: frozenset[int] | None
    at_least: Position
    stale_ok: StaleBounds | None
    wait_s: float


def parse_terms(store: str, given: Mapping[str, Any]) -> RequestTerms:
    """Return the terms that the parameters of a request give. Raises ValueError."""
    return RequestTerms(
        store,
        given.get("scope") == "local",
        parse_partitions(given.get("partitions", "")),
        parse_position(given.get("at-least", "")),
        parse_stale_bounds(given.get("stale-ok-lag"), given.get("stale-ok-age")),
        given.get("wait-ms", WAIT_MS) / 1000,
    )


def describe_answer(answer: StoreAnswer) -> dict[str, str]:
    """Return the headers that say as of when an answer is, and of which partitions."""
    headers = {
        POSITION_HEADER: format_position(answer.position),
        PARTITIONS_HEADER: ",".join(map(str, sorted(answer.partitions))),
        AGE_HEADER: str(round(answer.age_s * 1000) + 1),
    }
    if answer.lag is not None:
        headers[LAG_HEADER] = str(answer.lag)
    return headers
