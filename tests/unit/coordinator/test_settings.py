from __future__ import annotations

import pytest

from coordinator.errors import Code, Refused
from coordinator.settings import Kind, Setting, checked, items

LEVEL = Setting(Kind.INT, "-1", 1, 9, apart=-1)
RATIO = Setting(Kind.DOUBLE, "0.5", 0, 1)
POLICY = Setting(Kind.LIST, "delete", choices=("compact", "delete"))
REPLICAS = Setting(Kind.LIST, "", of_replicas=True)


@pytest.mark.parametrize(
    ("setting", "text", "kept"),
    [
        (Setting(Kind.BOOLEAN, "false"), " TRUE ", "TRUE"),
        (Setting(Kind.LONG, "0", -1), " -1 ", "-1"),
        (Setting(Kind.LONG, "0"), "+5", "+5"),
        (LEVEL, "-1", "-1"),
        (LEVEL, "9", "9"),
        (RATIO, "1e-3", "1e-3"),
        (POLICY, "compact , delete", "compact , delete"),
        (POLICY, "", ""),
        (REPLICAS, "*", "*"),
        (REPLICAS, "0:1, 12:3", "0:1, 12:3"),
        (Setting(Kind.STRING, "a"), "anything", "anything"),
    ],
)
def test_what_a_setting_can_be_is_kept_without_the_blanks_around_it(
    setting: Setting, text: str, kept: str
) -> None:
    assert checked("name", text, setting) == kept


@pytest.mark.parametrize(
    ("setting", "text", "why"),
    [
        (Setting(Kind.BOOLEAN, "false"), "yes", "Expected value to be either true or false"),
        (Setting(Kind.INT, "0"), str(2**31), "Not a number of type INT"),
        (Setting(Kind.LONG, "0"), str(2**63), "Not a number of type LONG"),
        (Setting(Kind.LONG, "0"), "1_0", "Not a number of type LONG"),
        (Setting(Kind.LONG, "0"), "٣", "Not a number of type LONG"),
        (Setting(Kind.LONG, "0"), "", "Not a number of type LONG"),
        (Setting(Kind.LONG, "0"), "-1", "Value must be at least 0"),
        (LEVEL, "0", "Value must be between 1 and 9 or equal to -1"),
        (LEVEL, "10", "Value must be between 1 and 9 or equal to -1"),
        (RATIO, "nan", "Not a number of type DOUBLE"),
        (RATIO, "2", "Value must be no more than 1"),
        (POLICY, "delete,foo", "String must be one of: compact, delete"),
        (POLICY, "delete,", "values must not be empty"),
        (REPLICAS, "*,0:1", "must be the literal"),
    ],
)
def test_what_a_setting_can_t_be_is_refused_with_the_reason(
    setting: Setting, text: str, why: str
) -> None:
    with pytest.raises(Refused, match=why) as refused:
        checked("name", text, setting)
    assert refused.value.code is Code.INVALID_CONFIG


def test_an_empty_text_is_a_list_of_nothing() -> None:
    assert (items(" "), items("a, b")) == ([], ["a", "b"])
