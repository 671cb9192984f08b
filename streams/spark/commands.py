"""Define the options of all commands that run Spark, and open a Spark session for a command.

This module is imported with the command line, which most people use without Spark: pyspark is
imported when a command of it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from streams.command_options import exit_on_user_error
from streams.errors import ConfigError
from streams.spark.environment import check_packages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Master = Annotated[
    str | None, typer.Option(help="Of Spark; by default local[*], this machine's cores.")
]
SparkSettings = Annotated[
    list[str] | None,
    typer.Option("--spark", metavar="NAME=VALUE", help="A setting of Spark, as often as needed."),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Log what Spark does.")]


@contextmanager
def open_spark_session(
    name: str, master: str | None, settings: Sequence[str] | None, *, verbose: bool = False
) -> Iterator[SparkSession]:
    """Yield a Spark session for one command; exit with status 2 on an error that its user can mend.

    UserError and OutcomeUnknown, raised here or in the block, are one line on standard error.
    `settings`: of Spark, as NAME=VALUE.
    """
    with exit_on_user_error():
        check_packages()
        from streams.spark.session import session, translate_spark_errors

        chosen = parse_pairs("--spark", settings, ", as in spark.executor.memory=4g")
        with (
            session(
                master, name=name, settings=chosen, verbose=verbose, runs_briefly=True
            ) as spark,
            translate_spark_errors(),
        ):
            yield spark


def parse_pairs(option_name: str, pairs: Sequence[str] | None, hint: str = "") -> dict[str, str]:
    """Parse the texts NAME=VALUE of an option. Raises ConfigError for a text of another form."""
    found = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise ConfigError(f"{option_name} {pair!r} is not NAME=VALUE{hint}")
        found[name] = value
    return found
