"""Test which transactional ids are taken for an application's own."""

from __future__ import annotations

from uuid import uuid4

import pytest

from streams.runtime.access.resource_names import is_own_transactional_id


@pytest.mark.parametrize(
    ("transactional_id", "expected"),
    [
        (f"orders-{uuid4()}-0", True),
        (f"orders-{uuid4()}-12", True),
        ("orders-task:lines-0", True),
        (f"orders-api-{uuid4()}-1", False),  # of application `orders-api`
        ("orders-loader", False),
        (f"{uuid4()}-0", False),
        ("orders-", False),
    ],
)
def test_only_what_workers_make_is_an_applications_own(
    transactional_id: str, expected: bool
) -> None:
    assert is_own_transactional_id(transactional_id, "orders") is expected
