"""Open Spark sessions for commands, and translate Spark's errors into one readable line.

A session that is there already is taken as it is, be it a notebook's or spark-submit's; otherwise
one is made on this machine, quiet and closed to the network, and stopped when the command ends.
"""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from streams.errors import (
    AuthenticationError,
    AuthorizationError,
    ConfigError,
    StreamsError,
    UserError,
)
from streams.spark.application_path import PATH_VARIABLE, format_application_path
from streams.spark.datasource import MillraceDataSource
from streams.spark.environment import (
    check_environment,
    check_java,
    check_packages,
    set_and_check_worker_interpreter,
)

MASTER = "local[*]"
REDACTION = {
    "spark.sql.redaction.options.regex": (
        r"(?i)url|ssl[.]key|oauthbearer[.]config|schema_registry$|user[.]info|registry[.]proxy"
    )
}
"""The setting by which Spark shows no secret of a connection that is given as options in SQL. What
is called secret, password or token it hides without."""
_BRIEF_RUN_SETTINGS = {
    "spark.driver.defaultJavaOptions": (
        "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
    ),
    "spark.sql.adaptive.enabled": "false",
    "spark.python.daemon.module": "streams.spark.python_daemon",
}
"""Settings of a local session for a run of minutes. Most code runs for some seconds, in which the
optimising compiler costs more than it gains, and so do the threads of a parallel garbage collector;
without that compiler Java's code cache is small by default. And planning each stage anew, by the
size of the one before, makes several jobs of each query. Workers are forked with their modules
imported."""
_SAFE_PATH = "spark.executorEnv.PYTHONSAFEPATH"
_SUBMIT_VARIABLE = "PYSPARK_GATEWAY_PORT"
"""The environment variable that spark-submit sets; it then chooses master, Java and logging."""
_QUIET_LOG_CONFIG = Path(__file__).with_name("log4j2.properties")
_MILLRACE_ERROR = re.compile(r"^streams\.errors\.(\w+): ", re.MULTILINE)
_WORKER_BEGINS, _WORKER_ENDS = "Error from python worker:", "PYTHONPATH was:"
"""The lines between which Spark tells what a Python worker has said that did not start."""
_FRAME = re.compile(r'^\s*File "(.+)", line (\d+)', re.MULTILINE)
_ERROR_SUFFIX = re.compile(
    r"\s*(SQLSTATE: \w+|\n\s*at org\.|\nJVM stacktrace|\n\nDuring handling).*", re.S
)

_SAME_ERRORS: Mapping[str, Callable[[str], UserError]] = {
    "AuthenticationError": AuthenticationError,
    "AuthorizationError": AuthorizationError.from_message,
    "ConfigError": ConfigError,
}


@contextmanager
def session(
    master: str | None = None,
    *,
    name: str = "millrace",
    settings: Mapping[str, str] = MappingProxyType({}),
    verbose: bool = False,
    runs_briefly: bool = False,
) -> Iterator[SparkSession]:
    """Yield a Spark session that knows the format `millrace`; its time zone is UTC if it is new.

    `master`: Spark's; by default all cores of this machine. `settings`: of Spark; they override
    those that are set here. `verbose`: log as Spark does by default. `runs_briefly`: for minutes at
    most, so that a local session had better start soon than be fast at last. Raises ConfigError: no
    Java, or one that is too old; an interpreter of another environment in PYSPARK_PYTHON; a package
    that is missing.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        check_environment(active)
        active.dataSource.register(MillraceDataSource)
        yield active
        return
    made = _create_session(master, name, settings, verbose=verbose, runs_briefly=runs_briefly)
    try:
        check_environment(made)
        made.dataSource.register(MillraceDataSource)
        yield made
    finally:
        made.stop()


def _create_session(
    master: str | None,
    name: str,
    settings: Mapping[str, str],
    *,
    verbose: bool,
    runs_briefly: bool,
) -> SparkSession:
    """Create a local Spark session, or return the one that spark-submit has prepared.

    Raises ConfigError if spark-submit chooses the master and `master` is given too.
    """
    check_packages()
    chosen = {"spark.sql.session.timeZone": "UTC", **REDACTION}
    builder = SparkSession.builder.appName(name)
    if _SUBMIT_VARIABLE not in os.environ:
        check_java(os.environ)
        master = master or MASTER
        builder = builder.master(master)
        forks_ready_workers = runs_briefly and master.startswith("local")
        chosen |= create_command_settings(
            PATH_VARIABLE if forks_ready_workers else "PYTHONPATH", verbose=verbose
        )
        if master.startswith("local"):
            set_and_check_worker_interpreter()
            chosen |= {
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
                # Spark's default of 200 is for clusters: here most would be empty, each a task.
                "spark.sql.shuffle.partitions": str(
                    (1 if runs_briefly else 2) * (os.cpu_count() or 1)
                ),
                **(_BRIEF_RUN_SETTINGS if runs_briefly else {}),
            }
    elif master is not None:
        raise ConfigError(f"spark-submit chooses the master: leave --master {master} to it")
    for setting, value in (chosen | dict(settings)).items():
        builder = builder.config(setting, value)
    with translate_spark_errors():
        return builder.getOrCreate()


def create_command_settings(path_variable: str, *, verbose: bool) -> dict[str, str]:
    """Return Spark's settings for a command: no web UI, quiet logs, the call's directory in paths.

    `module:app` is looked for in the directory of the call, so workers look there too: first, by
    PYTHONPATH, or as soon as they have imported what they need, by PATH_VARIABLE, so that a module
    there hides none of Python's own. PATH_VARIABLE has all of this process's search path besides.
    """
    paths = [str(Path.cwd()), *filter(None, [os.environ.get("PYTHONPATH")])]
    found = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if path_variable == PATH_VARIABLE:
        # Python would put the working directory first for a module that it runs.
        found |= {
            f"spark.executorEnv.{PATH_VARIABLE}": format_application_path(sys.path),
            _SAFE_PATH: "1",
        }
        paths = paths[1:]
    if paths:
        found["spark.executorEnv.PYTHONPATH"] = os.pathsep.join(paths)
    if not verbose:
        found["spark.driver.extraJavaOptions"] = (
            f"-Dlog4j2.configurationFile={_QUIET_LOG_CONFIG.as_uri()}"
        )
    return found


@contextmanager
def translate_spark_errors() -> Iterator[None]:
    """Translate any Spark error that the with block raises into a UserError of one line.

    A mistake of the user may be found in the driver, in a planner or in a worker; Spark hands on
    the traceback of the last two as text.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise to_user_error(error) from error


def to_user_error(error: Exception) -> UserError:
    """Translate a Spark error into a UserError of one line, Millrace's own error where it has one.

    Returns a ConfigError, AuthenticationError or AuthorizationError where that was raised,
    otherwise a StreamsError.
    """
    said = str(error.java_exception if isinstance(error, Py4JJavaError) else error)
    found = list(_MILLRACE_ERROR.finditer(said))
    if not found:
        return StreamsError(f"Spark: {_extract_cause_line(said) or repr(error)}")
    message = _ERROR_SUFFIX.sub("", said[found[-1].end() :]).strip()
    try:
        return _SAME_ERRORS.get(found[-1][1], StreamsError)(message)
    except ValueError:
        return StreamsError(message)


def _extract_cause_line(said: str) -> str:
    """Return the line of a Spark error that says what went wrong; empty if there is none.

    Of a Python worker's traceback that is the last error's line, with the place where it was
    raised; the first line of all only says where Spark noticed it. A worker that could not start
    has told its reason between two lines of Spark's.
    """
    _, is_of_worker, rest = said.rpartition(_WORKER_BEGINS)
    if is_of_worker:
        said = textwrap.dedent(rest.partition(_WORKER_ENDS)[0])
    _, traceback_begin, rest = said.rpartition("Traceback (most recent call last):")
    if traceback_begin:
        raised = next((line for line in rest.splitlines() if line[:1].strip()), "")
        if raised:
            places = _FRAME.findall(rest)
            where = f" ({places[-1][0]}:{places[-1][1]})" if places else ""
            return f"a Python worker has failed: {raised.strip()}{where}"
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if is_of_worker:
        return f"a Python worker did not start: {lines[-1] if lines else 'it said nothing'}"
    return lines[0] if lines else ""
