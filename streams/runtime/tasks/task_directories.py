"""Say by which number the directories of a sub-topology's tasks are named.

It stays the same over versions of the topology, which number their sub-topologies anew.
"""

from __future__ import annotations

from state.directory import StateDirectory
from state.subtopologies import SubtopologyContents
from streams.topology.build import Topology


def assign_directory_numbers(topology: Topology, directory: StateDirectory) -> dict[int, int]:
    """Number the task directories of each sub-topology as the state directory has saved it."""
    return directory.assign_and_save_directory_numbers(
        {
            sub.number: SubtopologyContents(
                sub.declared_sources, frozenset(spec.name for spec in sub.stores)
            )
            for sub in topology.subtopologies
        }
    )
