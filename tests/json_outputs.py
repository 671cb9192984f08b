"""Check what commands print with --json against their schemas."""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from streams.commands.json_outputs import describe_output


def check_json_output(command: str, printed: Any) -> None:
    """Check an object that a command printed: it has the fields of its schema, and no others.

    Raises jsonschema's ValidationError.
    """
    Draft202012Validator(_close_schema(describe_output(command))).validate(printed)


def _close_schema(schema: Any) -> Any:
    """Return a schema that allows no fields but those that it names."""
    if isinstance(schema, list):
        return [_close_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _close_schema(each) for name, each in schema.items()}
    return closed | {"additionalProperties": False} if "properties" in schema else closed
