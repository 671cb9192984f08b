"""Test hostile connections beside a good one, for a few seconds."""

from __future__ import annotations

from tests.fuzz.live import attack


def test_a_good_client_s_transactions_come_out_right_among_hostile_ones() -> None:
    attack(seed=1, seconds=4)
