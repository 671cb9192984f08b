"""Define the settings that decide how an application's steps are made, in Python and by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypedDict

from pydantic import PlainValidator
from pydantic_settings import BaseSettings

from streams.common.function_signatures import check_called_setting

StoreMedium = Literal["rocksdb", "in_memory"]
ProcessorWrapper = Callable[[str, Callable[[], Any]], Any]
"""Name of a step, function that makes its processor -> what makes the processor instead of it."""


def _require_wrapper_function(value: Any) -> ProcessorWrapper | None:
    """Return a processor wrapper, or None.

    Raises ValueError for what is no function of two arguments.
    """
    if value is None:
        return None
    if callable(value):
        check_called_setting(value, "step", "create_processor")
        return value  # type: ignore[no-any-return]
    raise ValueError(
        f"{value!r} is no function of a step's name and the function that makes its processor"
    )


class TopologySettings(BaseSettings):
    """Holds the settings that decide how the steps and stores of a topology are made."""

    default_store: StoreMedium = "rocksdb"
    """Where stores are that a step of the DSL keeps, and for which nothing else is said: `rocksdb`
    or `in_memory` (Kafka Streams: dsl.store.suppliers.class)."""
    ensure_explicit_internal_resource_naming: bool = False
    """Whether a topology is refused in which a store or a repartition topic has a generated
    name."""
    processor_wrapper: Annotated[
        ProcessorWrapper | None, PlainValidator(_require_wrapper_function)
    ] = None
    """A function of a step's name and the function that makes its processor, which returns one
    that makes the processor to run (KIP-1112). It is called for each processor and for each step of
    the DSL."""


class TopologyKeywords(TypedDict, total=False):
    """Holds the same settings as keyword arguments of `App`."""

    default_store: StoreMedium
    ensure_explicit_internal_resource_naming: bool
    processor_wrapper: ProcessorWrapper | None
