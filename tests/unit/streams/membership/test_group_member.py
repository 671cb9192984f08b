"""Test that a member of any protocol has what the runtime needs of it."""

from __future__ import annotations

from typing import Any

import pytest

from streams.membership.classic_member import ClassicProtocolMember
from streams.membership.group_member import GroupMember
from streams.testing.member import OnlyMember

METHODS = sorted(GroupMember.__abstractmethods__)


@pytest.mark.parametrize("member", [ClassicProtocolMember, OnlyMember])
def test_a_member_declares_that_it_is_one(member: type) -> None:
    assert GroupMember in member.__mro__


@pytest.mark.parametrize("missing", METHODS)
def test_a_member_of_another_protocol_is_not_created_before_it_has_every_method(
    missing: str,
) -> None:
    members: dict[str, Any] = {name: lambda self: None for name in METHODS if name != missing}
    with pytest.raises(TypeError, match=rf"abstract method '?{missing}'?"):
        type("Incomplete", (GroupMember,), members)()
