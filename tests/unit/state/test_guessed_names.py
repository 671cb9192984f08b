"""Test that a class says what the names that Kafka Streams has are here."""

from __future__ import annotations

from typing import Any

import pytest

from state.guessed_names import explain_guessed_names
from streams import Record, Store, Windowed, windows


@explain_guessed_names({"put_all": "put(key) for each"})
class Kept:
    """Stands for a class with a method of several words."""

    def put_if_absent(self, key: str) -> str:
        return key


def test_a_name_is_answered_in_both_spellings_and_is_not_there() -> None:
    kept: Any = Kept()
    for name in ("put_all", "putAll"):
        with pytest.raises(AttributeError, match=rf"^Kept has no '{name}': put\(key\) for each$"):
            getattr(kept, name)
    assert not hasattr(kept, "putAll")
    assert [name for name in dir(kept) if name[0] != "_"] == ["put_if_absent"]


def test_the_own_methods_are_answered_in_java_s_spelling() -> None:
    kept: Any = Kept()
    assert kept.put_if_absent("a") == "a"
    with pytest.raises(AttributeError, match="Kept has no 'putIfAbsent': did you mean put_if_abs"):
        kept.putIfAbsent("a")


@pytest.mark.parametrize(
    ("owner", "name", "instead"),
    [
        (Record("k", "v", 0), "timestamp", "the time is timestamp_ms"),
        (Windowed("k", 0, 1), "window", "its times are start_ms and end_ms"),
        (Store, "persistentWindowStore", r"Store\.window\('name'"),
        (windows.TimeWindows, "ofSizeWithNoGrace", r"windows\.tumbling\(size\)"),
    ],
)
def test_public_classes_answer(owner: Any, name: str, instead: str) -> None:
    with pytest.raises(AttributeError, match=instead):
        getattr(owner, name)
