"""`python -m coordinator --data DIR --port 9092`: a broker in the foreground.

Prints one line when it listens, and stops cleanly on SIGTERM or Ctrl-C. What a person can put right
(a taken port, a directory that can't be used, a wrong setting) is one line on stderr, status 2.
"""

from __future__ import annotations

import logging
import resource
from pathlib import Path
from typing import Annotated

import typer

from coordinator.broker import serve
from coordinator.config import BrokerConfig, WrongSetting
from coordinator.log.recovery import CorruptLog
from coordinator.log.storage import UnusableDataDirectory
from coordinator.shard.shard import BrokenInvariant
from coordinator.wire.server import CannotListen


def broker(
    data: Annotated[Path, typer.Option(help="Directory of the data; made if it isn't there.")],
    port: Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.")] = 9092,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A broker setting of Kafka's, such as num.partitions=4. May be repeated.",
        ),
    ] = None,
) -> None:
    """Run a broker that any Kafka client can use."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    try:
        config = BrokerConfig.from_settings(data, _pairs(settings or []), host=host, port=port)
        _allow_many_files()
        serve(config, _listening)
    except (WrongSetting, UnusableDataDirectory, CorruptLog, CannotListen) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None
    except BrokenInvariant as error:
        typer.echo(f"error: the broker stopped to protect its data: {error}", err=True)
        raise typer.Exit(1) from None


def _pairs(settings: list[str]) -> dict[str, object]:
    pairs: dict[str, object] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise WrongSetting(f"--set {setting}: write it as name=value")
        pairs[name] = value
    return pairs


def _allow_many_files() -> None:
    """Every segment and every client is an open file; the soft limit is often 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _listening(host: str, port: int) -> None:
    print(f"listening on {host}:{port}", flush=True)  # noqa: T201  whoever starts us waits for it


def main() -> None:
    typer.run(broker)


if __name__ == "__main__":
    main()
