"""Test that the package shipped by Spark is all of Millrace, and suffices beside dependencies."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from zipfile import ZipFile

import pytest

import streams
from streams.errors import ConfigError
from streams.spark.package import main, zip_package
from tests.processes import HANG_LIMIT_S
from tests.spark.cluster import bare_python

SOURCES = Path(streams.__file__).parents[1]


def imports(python: Path, module: str, path: str = "") -> subprocess.CompletedProcess[str]:
    """Run `python -c "import module"` outside of this repository's sources."""
    return subprocess.run(
        [str(python), "-c", f"import {module} as found; print(found.__file__)"],
        env={"PYTHONPATH": path},
        cwd=python.parent,
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT_S,
        check=False,
    )


def test_all_modules_are_in_it_and_no_bytecode(tmp_path: Path) -> None:
    count = zip_package(tmp_path / "millrace.zip")
    names = set(ZipFile(tmp_path / "millrace.zip").namelist())
    assert len(names) == count
    for each in ("coordinator", "millrace", "state", "streams"):
        modules = {str(path.relative_to(SOURCES)) for path in (SOURCES / each).rglob("*.py")}
        assert modules <= names
    assert [name for name in names if name.endswith(".pyc") or name.startswith("/")] == []


def test_the_same_sources_are_the_same_bytes(tmp_path: Path) -> None:
    zip_package(tmp_path / "one.zip")
    zip_package(tmp_path / "two.zip")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def test_a_python_without_millrace_imports_it_from_there(tmp_path: Path) -> None:
    python = bare_python(tmp_path / "bare")
    # An editable install leaves pages without code in a directory of that name.
    missing = imports(python, "streams.runtime.clients").stderr
    assert re.search(r"No module named 'streams(\.runtime)?'", missing), missing
    shipped = tmp_path / "millrace.zip"
    zip_package(shipped)
    found = imports(python, "streams.runtime.clients", str(shipped))
    assert found.stdout.startswith(str(shipped)), found.stderr


def test_a_name_that_spark_takes_for_no_package_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigError, match=r"millrace\.whl: .* must end in \.zip"):
        zip_package(tmp_path / "millrace.whl")
    assert main([str(tmp_path / "millrace.whl")]) == 2
    assert "must end in .zip" in capsys.readouterr().err


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere/millrace\.zip can't be written: No such file"):
        zip_package(tmp_path / "nowhere" / "millrace.zip")
    assert main([]) == 2
