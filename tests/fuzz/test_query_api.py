"""Fuzz the HTTP API of queries by its own OpenAPI document, with schemathesis.

Requests are made from the document, right ones and ones that are wrong on purpose, and each answer
is held against it: statuses, headers, media types, schemas. What is wrong has to be refused, and
nothing may be an error of the server. QUERY_FUZZ_EXAMPLES says how many requests each path gets,
and QUERY_FUZZ_SEED where they begin; a failure prints the request as a command of curl.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, seed, settings
from schemathesis import Case
from schemathesis.checks import CHECKS
from schemathesis.core.parameters import ParameterLocation

from streams.queries.http_api import ENDPOINTS
from streams.queries.openapi import describe_api
from tests.unit.streams.queries.served import TOKEN, create_reads, serve

EXAMPLES = int(os.environ.get("QUERY_FUZZ_EXAMPLES", "60"))
SEED = int(os.environ.get("QUERY_FUZZ_SEED", "1"))
STORES = ["by-number", "counts", "opaque", "raw", "windows"]
# A key is more than a string, and a position names a topic: a request may be refused though the
# document has it.
UNCHECKED = frozenset(("positive_data_acceptance",))

schema = schemathesis.openapi.from_dict(
    describe_api(ENDPOINTS, STORES, ["largest"], has_token=True)
)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    reads = create_reads()
    reads.offset = 2**63  # no position is waited for
    with serve(reads) as (host, port):
        yield f"http://{host}:{port}"


@seed(SEED)
@schema.parametrize()
@settings(
    max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
def test_each_answer_is_one_that_the_document_has(case: Case[Any], url: str) -> None:
    checks: list[Any] = [each for each in CHECKS.get_all() if each.__name__ not in UNCHECKED]
    assert len(checks) > 8, "schemathesis has lost its checks"
    case.call_and_validate(base_url=url, headers=find_headers_to_send(case), checks=checks)


def find_headers_to_send(case: Case[Any]) -> dict[str, str]:
    """Return the token for a request, none if its headers are wrong on purpose.

    The token could be all that is wrong with them. schemathesis sees it if a caller sends another
    body than the case's, and does not see it of headers (4.32.5): with the right token an answer
    would be one to a request that it takes for wrong.
    """
    assert case.meta is not None
    found = case.meta.components.get(ParameterLocation.HEADER)
    if found is not None and found.mode.is_negative:
        return {}
    return {"Authorization": f"Bearer {TOKEN}"}
