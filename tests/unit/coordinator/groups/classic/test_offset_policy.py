"""Test when a classic group's offsets may be committed or expire, by its state and protocol."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.groups.classic.offset_policy import derive_offset_deletion_policy
from coordinator.groups.classic.state import ClassicGroup, ClassicGroupMember, ClassicGroupPhase
from coordinator.offsets.policy import SIMPLE_GROUP_POLICY

WORDS = b"\0\1" + b"\0\0\0\1" + b"\0\5words" + b"\0\0\0\2" + b"me"  # and its user data


def group(phase: ClassicGroupPhase, *metadata: bytes, **fields: Any) -> ClassicGroup:
    """Create a group of consumers in its first generation."""
    made = ClassicGroup("g", phase, **{"protocol_type": "consumer", "generation": 1, **fields})
    for number, each in enumerate(metadata):
        name = f"m{number}"
        made.members[name] = ClassicGroupMember(name, None, "c", "/h", 1, 1, (("range", each),))
        made.protocol = "range"
    return made


def test_a_group_that_nobody_has_joined_holds_nothing_back() -> None:
    assert (
        derive_offset_deletion_policy(group(ClassicGroupPhase.EMPTY, protocol_type=None))
        == SIMPLE_GROUP_POLICY
    )


@pytest.mark.parametrize(("phase_ms", "since_ms"), [(-1, None), (0, 0), (7, 7)])
def test_offsets_of_an_empty_group_age_from_then_if_that_is_known(
    phase_ms: int, since_ms: int | None
) -> None:
    holding = derive_offset_deletion_policy(
        group(ClassicGroupPhase.EMPTY, phase_started_at_ms=phase_ms)
    )
    assert (holding.is_empty, holding.allows_deletion, holding.allows_expiry) == (True, True, True)
    assert holding.empty_since_ms == since_ms
    assert not holding.is_subscribed("words")


@pytest.mark.parametrize(
    "phase", [each for each in ClassicGroupPhase if each is not ClassicGroupPhase.EMPTY]
)
def test_consumers_keep_what_they_are_subscribed_to_and_the_rest_ages_while_they_are_stable(
    phase: ClassicGroupPhase,
) -> None:
    holding = derive_offset_deletion_policy(group(phase, WORDS, WORDS, phase_started_at_ms=7))
    assert (holding.is_empty, holding.allows_deletion, holding.empty_since_ms) == (
        False,
        True,
        None,
    )
    assert holding.allows_expiry is (phase is ClassicGroupPhase.STABLE)
    assert holding.is_subscribed("words")
    assert not holding.is_subscribed("lines")


@pytest.mark.parametrize("metadata", [b"", b"?", WORDS[:-1], WORDS[:8]])
def test_what_nobody_can_read_keeps_everything(metadata: bytes) -> None:
    holding = derive_offset_deletion_policy(group(ClassicGroupPhase.STABLE, WORDS, metadata))
    assert (holding.allows_expiry, holding.is_subscribed("anything")) == (False, True)


def test_before_its_first_generation_a_group_of_consumers_keeps_everything() -> None:
    assert derive_offset_deletion_policy(
        group(ClassicGroupPhase.EMPTY, generation=0)
    ).is_subscribed("anything")
    assert derive_offset_deletion_policy(
        group(ClassicGroupPhase.PREPARING_REBALANCE, generation=0)
    ).is_subscribed("anything")


def test_members_of_another_type_let_nobody_delete_or_expire_anything() -> None:
    holding = derive_offset_deletion_policy(
        group(ClassicGroupPhase.STABLE, WORDS, protocol_type="connect")
    )
    assert (holding.is_empty, holding.allows_deletion, holding.allows_expiry) == (
        False,
        False,
        False,
    )
    left = derive_offset_deletion_policy(group(ClassicGroupPhase.EMPTY, protocol_type="connect"))
    assert (left.allows_deletion, left.allows_expiry, left.is_subscribed("words")) == (
        True,
        True,
        False,
    )
