"""Clear a store whose keys on disk have another layout than the store would write now.

The checkpoint names the layout. A window store whose retention was changed cuts time into other
segments, and a store that becomes one of another kind reads other keys: what is on disk would not
be found, or be taken for something else. So it is emptied and caught up from its changelog, which
does not depend on the layout.
"""

from __future__ import annotations

import logging

from state.store import StoreCheckpoint, StoreDisk

log = logging.getLogger(__name__)


def read_checkpoint_or_clear(
    disk: StoreDisk, layout: str, store_name: str
) -> StoreCheckpoint | None:
    """Return the checkpoint of `disk`; clear the disk and return None if it has another layout."""
    checkpoint = disk.read_checkpoint()
    if checkpoint is None or checkpoint.layout == layout:
        return checkpoint
    log.warning(
        "store %r is emptied, to be caught up from its changelog: its kind or its retention was "
        "changed (on disk %s, now %s)",
        store_name,
        checkpoint.layout or "key-value",
        layout or "key-value",
    )
    disk.clear_all_data()
    return None
