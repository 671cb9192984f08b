from __future__ import annotations

import pytest

from coordinator.errors import Code, Refused
from coordinator.settings import ConfigType, Setting, split_list, validate_value

LEVEL = Setting(ConfigType.INT, "-1", 1, 9, extra_value=-1)
RATIO = Setting(ConfigType.DOUBLE, "0.5", 0, 1)
POLICY = Setting(ConfigType.LIST, "delete", choices=("compact", "delete"))
REPLICAS = Setting(ConfigType.LIST, "", is_replica_list=True)


@pytest.mark.parametrize(
    ("setting", "text", "kept"),
    [
        (Setting(ConfigType.BOOLEAN, "false"), " TRUE ", "TRUE"),
        (Setting(ConfigType.LONG, "0", -1), " -1 ", "-1"),
        (Setting(ConfigType.LONG, "0"), "+5", "+5"),
        (LEVEL, "-1", "-1"),
        (LEVEL, "9", "9"),
        (RATIO, "1e-3", "1e-3"),
        (POLICY, "compact , delete", "compact , delete"),
        (POLICY, "", ""),
        (REPLICAS, "*", "*"),
        (REPLICAS, "0:1, 12:3", "0:1, 12:3"),
        (Setting(ConfigType.STRING, "a"), "anything", "anything"),
    ],
)
def test_what_a_setting_can_be_is_kept_without_the_blanks_around_it(
    setting: Setting, text: str, kept: str
) -> None:
    assert validate_value("name", text, setting) == kept


@pytest.mark.parametrize(
    ("setting", "text", "why"),
    [
        (Setting(ConfigType.BOOLEAN, "false"), "yes", "Expected value to be either true or false"),
        (Setting(ConfigType.INT, "0"), str(2**31), "Not a number of type INT"),
        (Setting(ConfigType.LONG, "0"), str(2**63), "Not a number of type LONG"),
        (Setting(ConfigType.LONG, "0"), "1_0", "Not a number of type LONG"),
        (Setting(ConfigType.LONG, "0"), "٣", "Not a number of type LONG"),
        (Setting(ConfigType.LONG, "0"), "", "Not a number of type LONG"),
        (Setting(ConfigType.LONG, "0"), "-1", "Value must be at least 0"),
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
        validate_value("name", text, setting)
    assert refused.value.code is Code.INVALID_CONFIG


def test_an_empty_text_is_a_list_of_nothing() -> None:
    assert (split_list(" "), split_list("a, b")) == ([], ["a", "b"])
