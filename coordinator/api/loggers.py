"""Present the broker's loggers as Kafka's tools see them: names with levels, `root` first.

Levels are changed in the process and lost when it ends, as with Kafka.
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


def list_logger_names() -> list[str]:
    """Return `root` and the names of the broker's own loggers that exist."""
    own = [name for name in logging.root.manager.loggerDict if name.startswith("coordinator")]
    return [_ROOT, *sorted(own)]


def kafka_level_of(logger: logging.Logger) -> str:
    """Return Kafka's name of a logger's effective level.

    Of the levels that Kafka has, the least severe one that lets no more through.
    """
    level = logger.getEffectiveLevel()
    names = sorted(_LEVELS, key=_LEVELS.__getitem__)
    return next((name for name in names if _LEVELS[name] >= level), "FATAL")


def check_logger_level(name: str, level: str | None) -> None:
    """Raise Refused for a logger that doesn't exist, or a level that can't be set.

    Level None stands for the level of the logger's parent.
    """
    if name not in list_logger_names():
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


def set_logger_level(name: str, level: str | None) -> None:
    """Set the level of a logger; None lets it take its parent's."""
    logging.getLogger(name).setLevel(logging.NOTSET if level is None else _LEVELS[level])
