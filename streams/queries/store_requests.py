"""Read from a request for the rows of a store what it asks for."""

from __future__ import annotations

from typing import NamedTuple

from streams.graph.nodes import StoreKind, StoreSpec
from streams.queries.http_parameters import KEY_PARAMETERS, RANGE_PARAMETERS, read_parameters
from streams.queries.http_texts import RowTexts
from streams.queries.request_terms import RequestTerms, parse_terms
from streams.queries.store_reads import ROWS_MAX, StoreRead

PAGE_ROWS = 1_000
"""The rows that a streamed range reads at a time, of one commit of each partition."""


class StoreRequest(NamedTuple):
    """Holds what a request asks for."""

    terms: RequestTerms
    read: StoreRead
    texts: RowTexts
    is_streamed: bool


def parse_request(spec: StoreSpec, key_text: str | None, query: bytes) -> StoreRequest:
    """Return what a request asks for. Raises ValueError naming the parameter that is wrong."""
    is_lookup = key_text is not None
    given = read_parameters(query, KEY_PARAMETERS if is_lookup else RANGE_PARAMETERS)
    row_format = given.get("format", "json")
    texts = RowTexts.of_store(spec, row_format, given.get("key-serde"))
    key = None
    if key_text is not None:
        # A client that can't write an empty part of a path puts this before the bytes.
        key = texts.parse_key(key_text if row_format == "json" else key_text.removeprefix("="))
    is_streamed = not is_lookup and "limit" not in given and spec.kind is StoreKind.KEY_VALUE
    read = StoreRead(
        is_lookup=is_lookup,
        key=key,
        from_ms=given.get("from-ms"),
        to_ms=given.get("to-ms"),
        as_of_ms=given.get("as-of-ms"),
        after_start_ms=given.get("after-start-ms"),
        after_end_ms=given.get("after-end-ms"),
        is_reverse=given.get("reverse") == "1",
        limit=PAGE_ROWS if is_streamed else given.get("limit", ROWS_MAX),
        **{
            field: texts.parse_key(given[name])
            for name, field in (("from", "key_from"), ("to", "key_to"), ("after", "after"))
            if name in given
        },
    )
    return StoreRequest(parse_terms(spec.name, given), read, texts, is_streamed)
