"""Warn of stores that begin empty while changelogs or directories of unknown stores are left.

A store is found again by its name (docs/topology.md). One that was renamed begins empty, and what
it had lies in a changelog and in directories that nobody opens any more. That is said once: when
the changelog of the new store is made, or of one without a changelog its directory.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from state.directory import is_task_directory
from streams.errors import OutcomeUnknown, StreamsError
from streams.topology.compatibility import format_names

log = logging.getLogger(__name__)

_CHANGELOG = "-changelog"


def find_leftovers(
    application_id: str,
    store_names: Collection[str],
    existing_topics: Iterable[str],
    state_dir: Path,
    list_groups: Callable[[], Iterable[str]],
) -> list[str]:
    """Return the changelogs and directories of stores that are not in `store_names`.

    Changelogs are searched among `existing_topics`. What may belong to another application whose id
    begins with this one's is left out: one that has a group, or state on this machine. Groups are
    listed only if there is a changelog, and where they can't be, no changelog is returned.
    """
    begin = f"{application_id}-"
    named = {
        t for t in existing_topics if t.startswith(begin) and t[len(begin) :].endswith(_CHANGELOG)
    }
    changelogs = sorted(named - {f"{begin}{store}{_CHANGELOG}" for store in store_names})
    if changelogs:
        try:
            changelogs = exclude_other_applications(changelogs, begin, state_dir, list_groups)
        except (OutcomeUnknown, StreamsError) as error:
            log.info("it is not known whether %s is left: %s", format_names(changelogs), error)
            changelogs = []
    tasks = [
        task for task in (state_dir / application_id).glob("*_*") if is_task_directory(task.name)
    ]
    directories = {each.name for task in tasks for each in task.glob("*/")} - {*store_names}
    return [f"changelog {topic!r}" for topic in changelogs] + [
        str(state_dir / application_id / "*_*" / store) for store in sorted(directories)
    ]


def exclude_other_applications(
    topics: list[str],
    prefix: str,
    state_dir: Path,
    list_groups: Callable[[], Iterable[str]],
) -> list[str]:
    """Return the internal topics that belong to no application whose id begins with `prefix`.

    Raises: OutcomeUnknown and StreamsError where groups can't be listed. Tasks are to be assigned
    all the same: a broker that is away may not hold them up.
    """
    groups = [*list_groups()]
    local = (marker.parent.name for marker in state_dir.glob("*/millrace.json"))
    others = tuple(f"{a}-" for a in (*groups, *local) if a.startswith(prefix))
    return [topic for topic in topics if not topic.startswith(others)]


def format_leftover_warning(empty_stores: Iterable[str], leftovers: Iterable[str]) -> str:
    """Return the warning that names the stores that begin empty, and the leftovers of others."""
    return (
        f"store {format_names(empty_stores)} begins empty, and {', '.join(leftovers)} is left of "
        "stores "
        "that the topology does not have. If a store was renamed, stop, and give it its old name "
        "(store='...', or name='...' of its step); if not, delete what is left when nobody uses it "
        "any more (docs/topology.md, A store that was renamed)"
    )
