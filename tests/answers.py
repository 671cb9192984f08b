"""Read the error codes of a response, whichever API it is of."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from kio.schema.errors import ErrorCode


def codes(entity: Any) -> Iterator[int]:
    """Yield every error code of a response, however deep it is."""
    for field in dataclasses.fields(entity):
        value = getattr(entity, field.name)
        if isinstance(value, ErrorCode):
            yield int(value)
        for each in value if isinstance(value, tuple) else (value,):
            if dataclasses.is_dataclass(each):
                yield from codes(each)
