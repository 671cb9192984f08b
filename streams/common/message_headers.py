"""Present a message whose headers can't be read as they are, and check names to be written.

Kafka checks neither the names nor the values of headers. confluent-kafka's producer ends the
process for a name with a lone surrogate, cuts a name at a NUL, and writes `str(name)` for anything
else.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Header: TypeAlias = tuple[str, bytes | None]
"""A name and a value."""
TypeAndTimestampMs: TypeAlias = tuple[int, int]
"""A message's timestamp as confluent-kafka has it: 1 for create time, and the time in ms."""


class RepairedMessage:
    """Presents a Kafka message with its headers replaced by repaired ones.

    `lost_names` is how many names are U+FFFD alone, because nothing of them is known.
    """

    __slots__ = ("_headers", "_message", "lost_names")

    def __init__(self, message: Any, headers: list[Header], lost_names: int) -> None:
        self._message = message
        self._headers = headers
        self.lost_names = lost_names

    def __len__(self) -> int:
        """Return how many bytes the value has, as confluent-kafka's messages do."""
        return len(self._message)

    def headers(self) -> list[Header]:
        return self._headers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._message, name)


def check_header_name(name: object) -> None:
    """Raise an error for a header's name that can't be written unchanged.

    Raises: TypeError for a name that is no str, ValueError for one with a lone surrogate or a NUL.
    """
    if not isinstance(name, str):
        raise TypeError(f"a header's name is a str, not {name!r:.200}")
    if "\0" in name:
        raise ValueError(f"a header's name can't hold a NUL: {name!r:.200}")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"a header's name can't be written as UTF-8: {name!a:.200} has a lone surrogate"
        ) from None
