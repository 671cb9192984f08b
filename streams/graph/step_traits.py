"""The traits of a step: what the rest of the product may know of it without knowing its kind.

The DSL sets them where it makes the step. Who checks, optimizes, runs or recomputes a topology asks
for a trait and never for a kind's name, so that a new operator says all about itself in one place.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTraits:
    """Represents what a step does to records, whatever its operator.

    Without arguments nothing is promised of the step: it may drop records and keep state.
    """

    drops_records: bool = True
    """Whether it may forward nothing for a record that it gets."""
    forwards_unchanged: bool = False
    """Whether every record that it forwards is one that it got."""
    only_forwards: bool = False
    """Whether it changes no value, keeps none and hands none to user code."""
    joins_without_key: bool = False
    """Whether it makes results of records without a key, as left and outer joins do."""
    is_stateless: bool = False
    """Whether it is a stream's step that makes its results of one record at a time."""
    keeps_latest: bool = False
    """Whether the last result of a key follows from the last record of that key alone, since there
    is one result, of the same key, for every record."""
    has_side_effects: bool = False
    """Whether its function is there for what it does beside: recomputing leaves the call out."""
    names_children: bool = False
    """Whether its operator forwards to children by their names, so that none may be missing."""
    runs_processor: bool = False
    """Whether a Processor of the user's runs in it, which may write every store that it has."""
    looks_up_global_store: str | None = None
    """The store of the global table in which it looks rows up: what it finds depends on when."""
    reads_table_topic: bool = False
    """Whether it reads a topic as a table, so that the topic has the rows of its store."""
    takes_latest: bool = False
    """Whether it makes a table of the latest record of each key, and writes its store alone."""
    computes_rows: bool = False
    """Whether each of its rows follows from the rows of that key in the tables before it."""
    joins_tables: bool = False
    """Whether it is a side of a join of two tables, whose updates depend on which comes first."""


UNKNOWN_STEP = StepTraits()
"""The traits of a step of which nothing is known."""
MERGED_TABLES = StepTraits(only_forwards=True, computes_rows=True)
"""The traits of a step that forwards the updates of several steps as one table's."""
