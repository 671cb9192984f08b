"""Test which settings of a topic can explain that its first records were removed."""

from __future__ import annotations

import pytest

from streams.spark.source.removal import name_removal_cause

BOTH = "retention.ms=90000, which is 1.5 min; retention.bytes=9"


@pytest.mark.parametrize(
    ("settings", "cause"),
    [
        (
            {"cleanup.policy": "delete", "retention.ms": "604800000", "retention.bytes": "-1"},
            "by retention (retention.ms=604800000, which is 7 d) or with DeleteRecords",
        ),
        (
            {"cleanup.policy": "compact,delete", "retention.ms": "90000", "retention.bytes": "9"},
            f"by retention ({BOTH}) or with DeleteRecords",
        ),
        (
            {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "1024"},
            "by retention (retention.bytes=1024) or with DeleteRecords",
        ),
        (
            {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"},
            "with DeleteRecords: there is no retention (retention.ms=-1)",
        ),
        (
            {"cleanup.policy": "compact", "retention.ms": "604800000", "retention.bytes": "-1"},
            "with DeleteRecords: there is no retention (cleanup.policy=compact)",
        ),
        (
            {"cleanup.policy": "delete", "retention.ms": "0"},
            "by retention (retention.ms=0, which is 0 ms) or with DeleteRecords",
        ),
    ],
)
def test_the_settings_that_apply_are_named(settings: dict[str, str], cause: str) -> None:
    assert name_removal_cause(settings) == cause
