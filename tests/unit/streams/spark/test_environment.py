"""Test that Spark's environment is checked first, and that an error says what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from streams.errors import ConfigError
from streams.spark import environment
from streams.spark.environment import (
    check_environment,
    check_java,
    check_packages,
    check_worker_interpreter,
    set_and_check_worker_interpreter,
)


def program(path: Path, said: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("said", ['openjdk version "17.0.15" 2025-04-15', 'java version "21"'])
def test_a_java_that_spark_runs_on_is_fine(tmp_path: Path, said: str) -> None:
    program(tmp_path / "bin" / "java", said)
    check_java({"JAVA_HOME": str(tmp_path)})
    check_java({"PATH": str(tmp_path / "bin")})


@pytest.mark.parametrize(
    ("said", "version"),
    [('java version "1.8.0_402"', "8"), ('openjdk version "11.0.2" 2019', "11")],
)
def test_an_old_java_is_named_with_its_version(tmp_path: Path, said: str, version: str) -> None:
    program(tmp_path / "bin" / "java", said)
    with pytest.raises(ConfigError, match=rf"JAVA_HOME=.* is version {version}: install Java 17"):
        check_java({"JAVA_HOME": str(tmp_path)})


def test_a_java_home_without_java_is_told_though_the_path_has_one(tmp_path: Path) -> None:
    """Test that a JAVA_HOME without Java is refused, since Spark itself doesn't look further."""
    program(tmp_path / "good" / "java", 'version "17"')
    environ = {"JAVA_HOME": str(tmp_path / "bad"), "PATH": str(tmp_path / "good")}
    with pytest.raises(ConfigError, match=r"there is none in JAVA_HOME=.*bad"):
        check_java(environ)


def test_no_java_at_all_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Spark needs Java, and there is none in the PATH"):
        check_java({"PATH": str(tmp_path)})


def test_a_java_that_says_nothing_is_told(tmp_path: Path) -> None:
    program(tmp_path / "java", "what?")
    with pytest.raises(ConfigError, match="doesn't tell its version"):
        check_java({"PATH": str(tmp_path)})


def test_an_interpreter_of_this_environment_by_another_name_is_fine() -> None:
    check_worker_interpreter(sys.executable)
    check_worker_interpreter(str(Path(sys.executable).with_name("python3")))


def test_an_interpreter_of_another_environment_is_told_with_both(tmp_path: Path) -> None:
    other = tmp_path / "python"
    other.write_text(f"#!/bin/sh\necho {tmp_path}\n")
    other.chmod(0o755)
    with pytest.raises(ConfigError) as told:
        check_worker_interpreter(str(other))
    assert str(other) in str(told.value)
    assert f"PYSPARK_PYTHON={sys.executable}" in str(told.value)


def test_an_interpreter_that_is_not_there_is_told() -> None:
    with pytest.raises(ConfigError, match="it does not start"):
        check_worker_interpreter("no-such-python")


def test_without_a_choice_workers_run_this_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    set_and_check_worker_interpreter()
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    monkeypatch.setenv("PYSPARK_PYTHON", "no-such-python")
    with pytest.raises(ConfigError, match="no-such-python"):
        set_and_check_worker_interpreter()


def test_missing_and_old_packages_are_told_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(environment, "version", lambda name: "4.3.0")
    check_packages()
    monkeypatch.setattr(environment, "version", lambda name: "4.0.1")
    with pytest.raises(ConfigError, match=r"pyspark is 4\.0\.1, and 4\.3 is needed"):
        check_packages()
    monkeypatch.setattr(environment, "version", missing)
    with pytest.raises(ConfigError, match=r"pip install 'millrace-streams\[spark\]'"):
        check_packages()


_LOAD = """
import pathlib, pickle, sys
sys.path.append(sys.argv[1])
ask = pickle.loads(pathlib.Path(sys.argv[2]).read_bytes())
print(ask(("json", "confluent_kafka", "streams.common.topic_partitions")))
"""


def test_a_worker_without_this_package_can_say_what_it_lacks(tmp_path: Path) -> None:
    """Test that a worker without Millrace runs the import check, which is pickled by value.

    A worker that had to import Millrace to read the check could not answer.
    """
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    shim = tmp_path / "pyspark"
    shim.mkdir()
    (shim / "__init__.py").touch()
    (shim / "cloudpickle").symlink_to(Path(cloudpickle.__file__).parent)
    asked = tmp_path / "asked"
    asked.write_bytes(cloudpickle.dumps(environment._create_worker_import_check()))
    command = [sys.executable, "-I", "-S", "-c", _LOAD, str(tmp_path), str(asked)]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "'missing': ['confluent_kafka', 'streams']" in said.stdout


class Cluster:
    """Stands in for a Spark session whose workers lack the given modules."""

    master = "spark://elsewhere:7077"

    def __init__(self, *missing: str) -> None:
        self.sparkContext = self
        self._answer = {"executable": "/usr/bin/python3", "missing": missing, "error": "No module"}

    def parallelize(self, *_: Any) -> Cluster:
        return self

    def map(self, _: Any) -> Cluster:
        return self

    def first(self) -> dict[str, Any]:
        return self._answer


def test_a_cluster_whose_workers_lack_a_package_is_told_which() -> None:
    complete: Any = Cluster()
    check_environment(complete)
    lacking: Any = Cluster("confluent_kafka")
    with pytest.raises(ConfigError, match="'/usr/bin/python3', where confluent_kafka can't be imp"):
        check_environment(lacking)
