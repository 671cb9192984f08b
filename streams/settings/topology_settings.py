"""Define the settings that decide how an application's steps are made, in Python and by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypedDict

from pydantic import BeforeValidator, PlainValidator
from pydantic_settings import BaseSettings

from streams.common.function_signatures import check_setting_function
from streams.common.names import check_step_name
from streams.errors import TopologyError

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
        check_setting_function(value, "step", "create_processor")
        return value  # type: ignore[no-any-return]
    raise ValueError(
        f"{value!r} is no function of a step's name and the function that makes its processor"
    )


def _parse_internal_names(given: Any) -> dict[str, str]:
    """Return names by the names that they replace.

    Raises ValueError for what is no such dictionary, an illegal name, or one that comes twice.
    """
    if not isinstance(given, dict) or not all(isinstance(each, str) for each in given):
        raise ValueError(f"{given!r:.100} is no dictionary of a name here to its name in Java")
    for name in given.values():
        try:
            check_step_name(name)
        except TopologyError as error:
            raise ValueError(str(error)) from None
    if len(set(given.values())) < len(given):
        raise ValueError(f"{given!r:.200} has a name in Java twice")
    return given


class TopologySettings(BaseSettings):
    """Holds the settings that decide how the steps and stores of a topology are made."""

    default_store: StoreMedium = "rocksdb"
    """Where stores are that a step of the DSL keeps, and for which nothing else is said: `rocksdb`
    or `in_memory` (Kafka Streams: dsl.store.suppliers.class)."""
    ensure_explicit_internal_resource_naming: bool = False
    """Whether a topology is refused in which a store or a repartition topic has a generated
    name."""
    internal_names: Annotated[dict[str, str], BeforeValidator(_parse_internal_names)] = {}
    """The names to use instead of those of the stores of a join of streams, and of the topics and
    the store of a foreign-key join: so that an application goes on with those that Kafka Streams
    has generated. Names of topics are without the application's id."""
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
    internal_names: dict[str, str]
    processor_wrapper: ProcessorWrapper | None
