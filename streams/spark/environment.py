"""What Spark needs of its surroundings, looked at before it fails in its own words.

A JVM starts with the wrong Java and a worker with the wrong interpreter, and what they then say
names neither. Everything here says which it is, and what to set.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streams.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTRA = "pip install 'millrace[spark]'"
JAVA_MIN = 17
"""Spark 4 runs on Java 17 and later."""
PYSPARK_MIN = (4, 3)
_PYTHON = "PYSPARK_PYTHON"
_WAIT_S = 20.0
_JAVA_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_WANTED = ("confluent_kafka", "pyarrow", "streams.positions")
"""What a worker imports to read a topic."""


def check_packages() -> None:
    """Raises ConfigError if pyspark or pyarrow are missing, or pyspark is older than the extra
    asks for."""
    for package in ("pyspark", "pyarrow"):
        try:
            found = version(package)
        except PackageNotFoundError:
            raise ConfigError(f"{package} is not installed: {EXTRA}") from None
        if package == "pyspark" and tuple(map(int, found.split(".")[:2])) < PYSPARK_MIN:
            wanted = ".".join(map(str, PYSPARK_MIN))
            raise ConfigError(f"pyspark is {found}, and {wanted} is needed: {EXTRA}")


def check_java(environment: Mapping[str, str]) -> None:
    """Raises ConfigError unless Spark finds a Java that it runs on: that of JAVA_HOME, or else the
    first on the PATH."""
    home = environment.get("JAVA_HOME")
    if home:
        where = f"JAVA_HOME={home}"
        java = shutil.which(str(Path(home) / "bin" / "java"))
    else:
        where = "the PATH"
        java = shutil.which("java", path=environment.get("PATH", os.defpath))
    do = f"install Java {JAVA_MIN} or later, and let JAVA_HOME name it"
    if java is None:
        raise ConfigError(f"Spark needs Java, and there is none in {where}: {do}")
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_WAIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"{java}, the Java of {where}, does not start ({error}): {do}") from None
    found = _JAVA_VERSION.search(said.stderr + said.stdout)
    if found is None:
        raise ConfigError(f"{java}, the Java of {where}, doesn't tell its version: {do}")
    if int(found[1]) < JAVA_MIN:
        raise ConfigError(f"{java}, the Java of {where}, is version {found[1]}: {do}")


def check_interpreter(chosen: str) -> None:
    """Raises ConfigError unless `chosen`, which Spark starts workers with on this machine, belongs
    to the environment that this process runs in: another has other packages."""
    if chosen == sys.executable:
        return
    ask = [chosen, "-c", "import sys; print(sys.prefix)"]
    try:
        said = subprocess.run(ask, capture_output=True, text=True, timeout=_WAIT_S)
        prefix = said.stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        prefix = ""
    if not prefix or not Path(prefix).samefile(sys.prefix):
        what = f"it belongs to {prefix}" if prefix else "it does not start"
        raise ConfigError(
            f"Spark's workers would run {chosen!r} and this process is {sys.executable!r}; {what}: "
            f"set {_PYTHON}={sys.executable}, or leave it unset, before Spark starts"
        )


def choose_interpreter() -> None:
    """Let workers on this machine run this process's own interpreter. Raises ConfigError if
    PYSPARK_PYTHON names one of another environment."""
    check_interpreter(os.environ.setdefault(_PYTHON, sys.executable))


def check_environment(spark: SparkSession) -> None:
    """Raises ConfigError unless the workers of a session, whoever made it, can read topics.

    On this machine the interpreter tells; on a cluster one worker is asked, in a task of its own.
    Spark Connect is not asked: its server has its own environment.
    """
    try:
        context: Any = spark.sparkContext
    except Exception:  # what Spark Connect raises is not in every pyspark
        return
    if context.master.startswith("local") and not context.master.startswith("local-cluster"):
        check_interpreter(context.pythonExec)
        return
    found = context.parallelize([_WANTED], 1).map(_asked()).first()
    if found["missing"]:
        raise ConfigError(
            f"Spark's workers run {found['executable']!r}, where "
            f"{' and '.join(found['missing'])} can't be imported ({found['error']}): install "
            f"millrace[spark] there, or ship it with --py-files, and let {_PYTHON} name the "
            "interpreter that has it"
        )


def _asked() -> Any:
    """A function that a worker can run without this package: it goes there by value, since it has
    no name of a module."""

    def ask(modules: tuple[str, ...]) -> dict[str, Any]:
        import importlib
        import sys

        missing, said = [], ""
        for module in modules:
            try:
                importlib.import_module(module)
            except ImportError as error:
                missing.append(module.partition(".")[0])
                said = said or str(error)
        return {"executable": sys.executable, "missing": missing, "error": said}

    return ask
