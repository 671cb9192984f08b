"""Run a broker in the foreground: `python -m coordinator --data DIR --port 9092`.

Prints one line when it listens, and stops cleanly on SIGTERM or Ctrl-C. What a person can put right
(a taken port, a directory that can't be used, a wrong setting) is one line on stderr, status 2.
The options are read with argparse: typer would import for 70 ms before it reads the first
(docs/decisions/0003).
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn, TypeAlias

import coordinator.skip_hypothesis  # noqa: F401 - before all others, see there
from coordinator.announcement import announce_broker
from coordinator.broker_process import run_broker
from coordinator.clock import FileShiftedClock
from coordinator.config import BrokerConfig, WrongSetting
from coordinator.faults import WrongFault
from coordinator.linux_calls import raise_open_files_limit
from coordinator.log.data_directory import UnusableDataDirectory
from coordinator.shard.shard import BrokenInvariant
from coordinator.wire.server import CannotListen

ExitStatus: TypeAlias = int


class BrokerOptions(argparse.ArgumentParser):
    """Parses the broker's command line and raises WrongSetting for one that is wrong."""

    def __init__(self) -> None:
        super().__init__(
            "python -m coordinator",
            description="Run a broker that any Kafka client can use.",
            allow_abbrev=False,
            formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        )
        self.add_argument(
            "--data",
            type=Path,
            required=True,
            metavar="DIR",
            default=argparse.SUPPRESS,
            help="directory of the data; made if it isn't there",
        )
        self.add_argument(
            "--port", type=int, default=9092, help="port to listen on; 0 picks a free one"
        )
        self.add_argument("--host", default="127.0.0.1", help="address to listen on")
        self.add_argument(
            "--set",
            action="append",
            dest="settings",
            metavar="NAME=VALUE",
            default=argparse.SUPPRESS,
            help="a broker setting of Kafka's, such as num.partitions=4; may be repeated",
        )
        self._add_metrics_options()
        self.add_argument(
            "--faults",
            type=Path,
            metavar="FILE",
            default=None,
            help="faults to inject, TOML or JSON (docs/faults.md); read again on SIGHUP",
        )
        self.add_argument(
            "--clock-shift",
            type=Path,
            metavar="FILE",
            default=None,
            help="for tests: a file with the ms by which the wall clock is shifted "
            "(docs/faults.md); read again when it changes",
        )
        self.add_argument(
            "--announce",
            type=Path,
            metavar="FILE",
            default=None,
            help="file that gets address and process id; beside it, device and inode of the data",
        )
        self.add_argument(
            "--start-lock",
            type=int,
            metavar="FD",
            default=None,
            help="inherited file descriptor of a lock that is given up when the broker listens",
        )
        self.add_argument(
            "--log-level",
            choices=("debug", "info", "warning", "error"),
            default="warning",
            help="how much is logged; info: what happens to groups, among others",
        )

    def _add_metrics_options(self) -> None:
        self.add_argument(
            "--metrics-port",
            type=int,
            default=argparse.SUPPRESS,
            metavar="PORT",
            help="answer Prometheus on this port of this machine; the same as --set metrics.port",
        )
        self.add_argument(
            "--metrics-host",
            default=argparse.SUPPRESS,
            metavar="HOST",
            help="the address for Prometheus, 127.0.0.1 by default; the same as --set metrics.host",
        )

    def error(self, message: str) -> NoReturn:
        """Raise WrongSetting with argparse's message, where argparse would exit."""
        raise WrongSetting(message)


def main(arguments: Sequence[str] | None = None) -> ExitStatus:
    """Run the broker until it is told to stop and return the process's exit status.

    0 after a clean stop; 1 if a broken invariant stopped it; 2 for what the user can put right.
    """
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    try:
        options = BrokerOptions().parse_args(arguments)
        logging.getLogger().setLevel(options.log_level.upper())
        settings = _parse_settings(getattr(options, "settings", ()))
        if "metrics_port" in options:
            settings["metrics.port"] = options.metrics_port
        if "metrics_host" in options:
            settings["metrics.host"] = options.metrics_host
        config = BrokerConfig.from_settings(
            options.data, settings, host=options.host, port=options.port
        )
        raise_open_files_limit()
        clock = None if options.clock_shift is None else FileShiftedClock(options.clock_shift)
        announce = partial(
            announce_broker, data=options.data, file=options.announce, start_lock=options.start_lock
        )
        run_broker(config, announce, options.faults, clock)
    except (WrongSetting, WrongFault, UnusableDataDirectory, CannotListen) as error:
        sys.stderr.write(f"millrace: {error}\n")
        return 2
    except BrokenInvariant as error:
        sys.stderr.write(f"millrace: the broker stopped to protect its data: {error}\n")
        return 1
    return 0


def _parse_settings(settings: Sequence[str]) -> dict[str, object]:
    """Parse `name=value` texts into a dict.

    Raises: WrongSetting for a text without `=`.
    """
    pairs: dict[str, object] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise WrongSetting(f"--set {setting}: write it as name=value")
        pairs[name] = value
    return pairs


if __name__ == "__main__":
    sys.exit(main())
