"""Test what is said of a serde that the module does not have."""

from __future__ import annotations

import pytest

from streams import serdes


@pytest.mark.parametrize(
    ("name", "meant"), [("str", "string"), ("long", "int64"), ("String", "string")]
)
def test_a_name_of_another_library_leads_to_the_serde(name: str, meant: str) -> None:
    assert hasattr(serdes, meant)
    with pytest.raises(AttributeError, match=f"no attribute '{name}': use serdes.{meant}$"):
        getattr(serdes, name)


def test_an_unknown_name_is_answered_with_those_there_are() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'strin': there are .*, windowed$"):
        assert serdes.strin
