"""List an error with the errors that have led to it."""

from __future__ import annotations

from collections.abc import Iterator


def list_causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, and one after the other those that caused it or were handled before.

    Also those that `from None` keeps out of a traceback.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
