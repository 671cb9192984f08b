"""Call a method of a client, and raise as an exception what confluent-kafka raises bare.

confluent-kafka 2.16 raises a fatal error from within the callbacks that flush and poll serve. The
object is a KafkaError then, which is no exception: no `except` with a class catches it, so that a
thread would end without a word, and a fenced producer would never be replaced.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from traceback import clear_frames
from typing import Any

from confluent_kafka import KafkaError, KafkaException


def call_and_wrap_bare_error(method: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Call a method and return its result. Raises KafkaException with a KafkaError raised bare."""
    raised: object = None
    try:
        return method(*arguments)
    except BaseException:
        raise
    except:  # noqa: E722 - no exception, so that no class would catch it
        raised = sys.exc_info()[1]
    # Outside of the handler: what is no exception must not become the context of one.
    if isinstance(raised, KafkaError):
        raise KafkaException(raised)
    raise SystemError(f"{raised!r} was raised, which is no exception")


def release_error_frames(error: BaseException) -> None:
    """Release what the frames hold that an error, and its causes, came through."""
    raised: BaseException | None = error
    while raised is not None:
        clear_frames(raised.__traceback__)
        raised = raised.__cause__ or raised.__context__
