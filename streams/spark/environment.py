"""Check Java, the Python interpreter and the packages that Spark needs before it starts.

A JVM starts with the wrong Java and a worker with the wrong interpreter, and the errors that they
then raise name neither. The errors of this module say which it is, and what to set.
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

INSTALL_COMMAND = "pip install 'millrace-streams[spark]'"
JAVA_MIN = 17
"""Spark 4 runs on Java 17 and later."""
PYSPARK_MIN = (4, 3)
_PYTHON_VARIABLE = "PYSPARK_PYTHON"
_PROCESS_TIMEOUT_S = 20.0
_JAVA_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_REQUIRED_MODULES = ("confluent_kafka", "pyarrow", "streams.common.topic_partitions")
"""The modules that a worker imports to read a topic."""


def check_packages() -> None:
    """Raise ConfigError if pyspark or pyarrow is missing, or pyspark is older than PYSPARK_MIN."""
    for package in ("pyspark", "pyarrow"):
        try:
            found = version(package)
        except PackageNotFoundError:
            raise ConfigError(f"{package} is not installed: {INSTALL_COMMAND}") from None
        if package == "pyspark" and tuple(map(int, found.split(".")[:2])) < PYSPARK_MIN:
            wanted = ".".join(map(str, PYSPARK_MIN))
            raise ConfigError(f"pyspark is {found}, and {wanted} is needed: {INSTALL_COMMAND}")


def check_java(environment: Mapping[str, str]) -> None:
    """Raise ConfigError unless Spark finds a Java of version JAVA_MIN or later.

    It takes the Java of JAVA_HOME, or else the first on the PATH; `environment` has both.
    """
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
        said = subprocess.run(  # nosec B603 # the user's own Java, without a shell
            [java, "-version"], capture_output=True, text=True, timeout=_PROCESS_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"{java}, the Java of {where}, does not start ({error}): {do}") from None
    found = _JAVA_VERSION.search(said.stderr + said.stdout)
    if found is None:
        raise ConfigError(f"{java}, the Java of {where}, doesn't tell its version: {do}")
    if int(found[1]) < JAVA_MIN:
        raise ConfigError(f"{java}, the Java of {where}, is version {found[1]}: {do}")


def check_worker_interpreter(executable: str) -> None:
    """Raise ConfigError unless `executable` belongs to the environment of this process.

    Spark starts workers with `executable` on this machine; another environment has other packages.
    """
    if executable == sys.executable:
        return
    command = [executable, "-c", "import sys; print(sys.prefix)"]
    try:
        process = subprocess.run(  # nosec B603 # the user's own Python, without a shell
            command, capture_output=True, text=True, timeout=_PROCESS_TIMEOUT_S
        )
        prefix = process.stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        prefix = ""
    if not prefix or not Path(prefix).samefile(sys.prefix):
        what = f"it belongs to {prefix}" if prefix else "it does not start"
        raise ConfigError(
            f"Spark's workers would run {executable!r} and this process is {sys.executable!r}; "
            f"{what}: set {_PYTHON_VARIABLE}={sys.executable}, or leave it unset, before Spark "
            "starts"
        )


def set_and_check_worker_interpreter() -> None:
    """Set PYSPARK_PYTHON to this process's own interpreter, unless it is set.

    Raises ConfigError if it names an interpreter of another environment.
    """
    check_worker_interpreter(os.environ.setdefault(_PYTHON_VARIABLE, sys.executable))


def check_environment(spark: SparkSession) -> None:
    """Raise ConfigError unless the Python workers of any Spark session can import what reads need.

    On this machine the path of the interpreter is checked; on a cluster one task tries to import
    the modules on a worker. With Spark Connect nothing is checked: its server has its own
    environment.
    """
    try:
        context: Any = spark.sparkContext
    except Exception:  # what Spark Connect raises is not in every pyspark
        return
    if context.master.startswith("local") and not context.master.startswith("local-cluster"):
        check_worker_interpreter(context.pythonExec)
        return
    found = context.parallelize([_REQUIRED_MODULES], 1).map(_create_worker_import_check()).first()
    if found["missing"]:
        raise ConfigError(
            f"Spark's workers run {found['executable']!r}, where "
            f"{' and '.join(found['missing'])} can't be imported ({found['error']}): install "
            "millrace-streams[spark] there, or ship it with --py-files, and let "
            f"{_PYTHON_VARIABLE} name the interpreter that has it"
        )


def _create_worker_import_check() -> Any:
    """Return a function that a worker runs to report its interpreter and the modules it misses.

    The worker needs no Millrace for it: a nested function has no module to be imported from, so it
    is pickled by value.
    """

    def import_modules(modules: tuple[str, ...]) -> dict[str, Any]:
        import importlib
        import sys

        missing, first_error = [], ""
        for module in modules:
            try:
                importlib.import_module(module)
            except ImportError as error:
                missing.append(module.partition(".")[0])
                first_error = first_error or str(error)
        return {"executable": sys.executable, "missing": missing, "error": first_error}

    return import_modules
