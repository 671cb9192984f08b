"""Read from the logs of group shards what they say of classic groups."""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.groups.classic.state import GroupForgotten, GroupSaved
from coordinator.groups.state import GroupCodec
from tests.unit.coordinator.fakes import FakeLog


class SavedGroups:
    """Holds the last record of each classic group in some logs, of which it reads a batch once."""

    def __init__(self, logs: Sequence[FakeLog]) -> None:
        self._logs = logs
        self._read_counts = [0] * len(logs)  # of batches
        self._saved: dict[str, GroupSaved] = {}

    def read_logs(self) -> dict[str, GroupSaved]:
        """Return the last record of each group by its id, as the logs are now."""
        codec = GroupCodec()
        for index, log in enumerate(self._logs):
            batches = log.batches(self._read_counts[index])
            self._read_counts[index] = len(log.appended)
            for batch in batches:
                for encoded in () if batch.is_control else batch.iterate_records():
                    match codec.decode_record(encoded.key, encoded.value):
                        case GroupSaved(group_id) as saved:
                            self._saved[group_id] = saved
                        case GroupForgotten(group_id):
                            self._saved.pop(group_id, None)
        return self._saved
