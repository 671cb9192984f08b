"""The broker's loggers as Kafka's tools see them: a name and a level each, `root` the topmost.

Levels are changed in the process and are forgotten when it ends, as with Kafka.
"""

from __future__ import annotations

import logging

from coordinator.errors import Code, Refused

_ROOT = "root"
_LEVELS = {
    "DEBUG": logging.DEBUG,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "INFO": logging.INFO,
    "TRACE": logging.DEBUG - 5,
    "WARN": logging.WARNING,
}


def logger_names() -> list[str]:
    """`root` and the broker's own loggers that exist."""
    own = [name for name in logging.root.manager.loggerDict if name.startswith("coordinator")]
    return [_ROOT, *sorted(own)]


def level_of(logger: logging.Logger) -> str:
    """The level that holds, by Kafka's name: the most severe one that lets no more through."""
    level = logger.getEffectiveLevel()
    names = sorted(_LEVELS, key=_LEVELS.__getitem__)
    return next((name for name in names if _LEVELS[name] >= level), "FATAL")


def check_level(name: str, level: str | None) -> None:
    """Refused for a logger that isn't there, and for a level that isn't one. None: its parent's."""
    if name not in logger_names():
        raise Refused(Code.INVALID_CONFIG, f"Logger {name} does not exist!")
    if level is None and name == _ROOT:
        message = "Removing the log level of the root logger is not allowed"
        raise Refused(Code.INVALID_REQUEST, message)
    if level is not None and level not in _LEVELS:
        raise Refused(
            Code.INVALID_CONFIG,
            f"Cannot set the log level of {name} to {level} as it is not a supported log level. "
            f"Valid log levels are {', '.join(sorted(_LEVELS))}",
        )


def set_level(name: str, level: str | None) -> None:
    """The level of a logger from now on; None: that of its parent."""
    logging.getLogger(name).setLevel(logging.NOTSET if level is None else _LEVELS[level])
