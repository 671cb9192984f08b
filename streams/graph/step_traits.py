"""Define a step's traits, which tell the rest of the product all it may know of a step's kind.

The DSL sets them where it makes the step. Who checks, optimizes, runs or recomputes a topology asks
for a trait and never for a kind's name, so that a new operator says all about itself in one place.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTraits:
    """Represents the effects of a step on records, such as dropping some or changing keys.

    Without arguments nothing is promised of the step: it may drop records and keep state.
    """

    drops_records: bool = True
    """The step may forward nothing for a record that it gets."""
    forwards_unchanged: bool = False
    """The step forwards no other records than those that it gets."""
    only_forwards: bool = False
    """The step changes no value, keeps none and hands none to user code."""
    joins_without_key: bool = False
    """The step makes results of records without a key, as left and outer joins do."""
    is_stateless: bool = False
    """The step is a stream's, and makes its results of one record at a time."""
    keeps_latest: bool = False
    """The step makes one result of each record, of the same key.

    So the last result of a key follows from the last record of that key alone."""
    has_side_effects: bool = False
    """The step's function is there for its side effects: recomputing leaves the call out."""
    names_children: bool = False
    """The step's operator forwards to children by their names, so that none may be missing."""
    runs_processor: bool = False
    """The step runs a Processor of the user's, which may write every store that it has."""
    looks_up_global_store: str | None = None
    """The store of the global table in which the step looks rows up; what is found may change."""
    reads_table_topic: bool = False
    """The step reads a topic as a table, so that the topic has the rows of its store."""
    takes_latest: bool = False
    """The step makes a table of the latest record of each key, and writes its store alone."""
    computes_rows: bool = False
    """Each row of the step follows from the rows of that key in the tables before it."""
    keeps_keys: bool = False
    """The step is one whose records keep their keys, to which no wrapper may give others."""
    is_never_wrapped: bool = False
    """The step is no processor in Kafka Streams, or one that no wrapper is handed."""
    joins_tables: bool = False
    """The step is a side of a join of two tables, whose updates depend on which comes first."""


UNKNOWN_STEP = StepTraits()
"""The traits of a step of which nothing is known."""
MERGED_TABLES = StepTraits(only_forwards=True, computes_rows=True)
"""The traits of a step that forwards the updates of several steps as one table's."""
