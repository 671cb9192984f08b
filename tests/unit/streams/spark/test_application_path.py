"""Test in which order Spark's Python workers look for modules."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from streams.settings.setting_origins import ENVIRONMENT_PREFIX
from streams.spark.application_path import (
    PATH_VARIABLE,
    add_application_path,
    format_application_path,
)
from streams.spark.session import create_command_settings

PREFIX = "spark.executorEnv."
PROGRAM = """
import json, queue, sys
from streams.spark.application_path import add_application_path
add_application_path()
import shop
json.dump([shop.NAME, queue.__file__], sys.stdout)
"""


def test_a_module_of_the_application_hides_none_of_pythons_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "queue.py").write_text("raise RuntimeError('mine')")
    (tmp_path / "shop.py").write_text("NAME = 'shop'")
    home = Path(__file__).parents[4]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(home))
    settings = create_command_settings(PATH_VARIABLE, verbose=False)
    environment = {
        name.removeprefix(PREFIX): value
        for name, value in settings.items()
        if name.startswith(PREFIX)
    }
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    name, path = json.loads(ended.stdout)
    assert name == "shop"
    assert Path(path).parent != tmp_path


def test_workers_look_where_the_command_did_before_the_application_went_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lib").mkdir()
    monkeypatch.chdir(tmp_path)
    found = [str(tmp_path / "with: colon"), "lib"]
    value = format_application_path(found)
    assert value.splitlines() == [found[0], str(tmp_path / "lib"), str(tmp_path)]

    monkeypatch.setattr(sys, "path", ["/known"])
    monkeypatch.setenv(PATH_VARIABLE, f"{value}\n/known")
    add_application_path()
    assert sys.path == [*value.splitlines(), "/known"]


def test_no_worker_takes_the_variable_for_an_unknown_setting() -> None:
    assert not PATH_VARIABLE.startswith(ENVIRONMENT_PREFIX)


def test_workers_that_import_nothing_first_have_the_directory_in_their_python_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    found = create_command_settings("PYTHONPATH", verbose=False)
    assert found[f"{PREFIX}PYTHONPATH"] == os.pathsep.join([str(tmp_path), "/elsewhere"])
    assert f"{PREFIX}{PATH_VARIABLE}" not in found
