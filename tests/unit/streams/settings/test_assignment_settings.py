"""Test the settings by which tasks are assigned, and which are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streams import ConfigError
from streams.settings.config import load_config


def test_an_assignor_is_a_function() -> None:
    def assign(state: object) -> list[Any]:
        return []

    assert load_config(task_assignor=assign).task_assignor is assign
    assert load_config().task_assignor is None


@pytest.mark.parametrize("given", ["sticky", 1, dict])
def test_what_is_no_function_is_refused(given: object) -> None:
    with pytest.raises(ConfigError, match="is no function of an ApplicationState"):
        load_config(task_assignor=given)


def test_a_class_of_java_is_refused_with_the_way_to_give_one_here(tmp_path: Path) -> None:
    file = tmp_path / "app.properties"
    file.write_text("task.assignor.class=com.example.Sticky")
    with pytest.raises(ConfigError, match=r"give the function: App\(\.\.\., task_assignor"):
        load_config(file)
