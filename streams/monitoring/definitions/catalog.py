"""List the figures of a worker; its collector can emit no other."""

from __future__ import annotations

from functools import cache

from streams.monitoring.definitions.clients import CLIENT_DEFINITIONS
from streams.monitoring.definitions.definition import FigureDefinition
from streams.monitoring.definitions.kafka_streams import KAFKA_STREAMS_DEFINITIONS
from streams.monitoring.definitions.worker import WORKER_DEFINITIONS


def all_definitions() -> tuple[FigureDefinition, ...]:
    """Return the definitions of all figures, Millrace's own before Kafka Streams'."""
    return (*WORKER_DEFINITIONS, *KAFKA_STREAMS_DEFINITIONS, *CLIENT_DEFINITIONS)


@cache
def find_definition(name: str) -> FigureDefinition:
    """Return the definition of a figure by its name.

    Raises: KeyError for one that isn't defined.
    """
    return {each.name: each for each in all_definitions()}[name]


@cache
def find_family_level(family_name: str) -> str:
    """Return the recording level of a family by the name that prometheus_client has for it.

    Raises: KeyError for one that isn't defined.
    """
    return {each.family_name: each for each in all_definitions()}[family_name].level
