"""Explain what it means that topics which are written to are not on the brokers any more.

An output can be created again. An internal topic can't: what it had is gone, and committed offsets
rest on it. One that is made by hand has other settings, too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum

from streams.command_lines import format_command


class InternalKind(StrEnum):
    """Names the kinds of internal topics."""

    CHANGELOG = "changelog"
    REPARTITION = "repartition topic"
    LEDGER = "ledger"


def explain_missing_topics(
    topics: Collection[str], internal_topics: Mapping[str, InternalKind]
) -> str:
    """Return why nothing is committed while `topics` are missing, and what to do.

    `internal_topics` are those of the application, with what each of them is.
    """
    sentences = []
    for kind in InternalKind:
        if named := sorted(t for t in topics if internal_topics.get(t) is kind):
            sentences.append(
                f"{kind} {_join_topics(named)} is not on the brokers: it was deleted, "
                f"{_explain_loss(kind)}"
            )
    if outputs := sorted(t for t in topics if t not in internal_topics):
        sentences.append(
            f"output {_join_topics(outputs)} is not on the brokers: it was deleted, and nothing is "
            f"committed until it is created again ({format_command('create-topics', *outputs)})"
        )
    return ". ".join(sentences)


def _explain_loss(kind: InternalKind) -> str:
    """Explain what is lost with a deleted internal topic of this kind, and what to do."""
    reset = format_command("group reset")
    match kind:
        case InternalKind.CHANGELOG:
            return (
                "and nothing is committed without it. Don't create it by hand: offsets are "
                "committed whose records a new one does not have, and workers refuse it, also "
                f"where their stores are whole. End the workers, and start over with {reset}"
            )
        case InternalKind.REPARTITION:
            return (
                "with the records between two steps that were not processed yet, and nothing is "
                "committed without it. Don't create it by hand: end the workers and start them "
                "again. They create it as it has to be, and say how to go on without those "
                f"records; {reset} starts over"
            )
        case InternalKind.LEDGER:
            return (
                "and nothing is committed without it. Don't create it by hand: end the workers "
                "and start them again, and they create it as it has to be"
            )


def _join_topics(topics: Collection[str]) -> str:
    return ", ".join(map(repr, topics))
