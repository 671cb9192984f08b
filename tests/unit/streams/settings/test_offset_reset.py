"""Test the values of the settings for missing offsets and for offsets out of range."""

from __future__ import annotations

from datetime import timedelta

import pytest

from streams import ConfigError
from streams.settings.config import load_config
from streams.settings.offset_reset import (
    OffsetResetPolicy,
    ResetStrategy,
    parse_reset_policy,
    parse_source_policy,
)


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [
        ("PT24H", 86_400_000),
        ("P7D", 604_800_000),
        ("P1DT12H30M", 131_400_000),
        ("PT0.5S", 500),
        ("pt1m", 60_000),
        ("86400000", 86_400_000),
        ("0", 0),
    ],
)
def test_a_duration_is_iso_8601_or_a_number_of_milliseconds(text: str, duration_ms: int) -> None:
    assert parse_reset_policy(f"by_duration:{text}", stop_word="fail") == OffsetResetPolicy(
        ResetStrategy.BY_DURATION, duration_ms
    )


def test_a_duration_that_begins_before_1970_selects_the_beginning() -> None:
    now_ms = 1_700_000_000_000
    for given in (timedelta(days=36_500), "by_duration:P36500D"):
        assert parse_source_policy(given).find_since_ms(now_ms) == 0
    assert parse_source_policy("by_duration:PT1S").find_since_ms(now_ms) == now_ms - 1_000


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "24H", "PT-1H", "-5", "1.5", "P1M2D"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration"):
        parse_reset_policy(f"by_duration:{text}", stop_word="fail")


def test_each_setting_has_its_own_word_for_stopping() -> None:
    assert load_config(auto_offset_reset="none", offset_out_of_range="fail")
    for wrong in ({"auto_offset_reset": "fail"}, {"offset_out_of_range": "none"}):
        with pytest.raises(
            ConfigError, match=r"is not one of '(none|fail)', 'earliest', 'latest', '"
        ):
            load_config(**wrong)


def test_without_a_word_an_offset_out_of_range_stops_the_thread_and_none_begins_at_the_start() -> (
    None
):
    config = load_config()
    assert (config.offset_out_of_range, config.auto_offset_reset) == ("fail", "earliest")
