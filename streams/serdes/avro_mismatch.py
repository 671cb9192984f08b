"""Report a value that does not fit its Avro schema, or would come back as another one."""

from __future__ import annotations


class AvroMismatch(ValueError):
    """Reports a value or a schema that doesn't fit, with its place in the message."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(f"value{path}: {reason}")
        self.reason, self.path = reason, path

    def with_parent_step(self, step: str) -> AvroMismatch:
        """Return the mismatch as seen from the enclosing value; `step` is .field or [index]."""
        return AvroMismatch(self.reason, step + self.path)
