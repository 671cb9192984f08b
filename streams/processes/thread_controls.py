"""Let the handle of a running worker pause its threads, change their number, and describe them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streams.dsl.kafka_streams_names import compose_missing_method_hint
from streams.processes.lifecycle import ApplicationLifecycle
from streams.processes.local_threads import (
    StoreLag,
    ThreadMetadata,
    collect_store_lags,
    describe_thread,
)
from streams.processes.worker_threads import WorkerThreads
from streams.runtime.threads.watchdog import Watchdog
from streams.runtime.threads.worker_control import WorkerControl


class ThreadControls:
    """Controls the stream threads of a running worker; `RunningApp` is one."""

    def __init__(
        self,
        control: WorkerControl,
        threads: WorkerThreads,
        lifecycle: ApplicationLifecycle,
        watchdog: Watchdog,
    ) -> None:
        self._control = control
        self._worker_threads = threads
        self._active_lifecycle = lifecycle
        self._inspected_by = watchdog

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError that says what to call instead of `name`."""
            if name.startswith("_"):
                raise AttributeError(name)
            hint = compose_missing_method_hint(type(self), name)
            raise AttributeError(f"{type(self).__name__} has no {name!r}{hint}")

    def pause(self) -> None:
        """Commit, and process no more records until `resume` (KIP-834).

        The worker stays in its group with its tasks, restores go on, and standbys follow.
        """
        self._control.is_paused = True

    def resume(self) -> None:
        """Go on with the records after those that were processed before `pause`."""
        self._control.is_paused = False

    @property
    def is_paused(self) -> bool:
        """Return whether `pause` was called, and `resume` not since."""
        return self._control.is_paused

    def add_worker_thread(self) -> str:
        """Start another stream thread, which joins the group, and return its name (KIP-663).

        It lasts until it is removed or the worker ends: the setting `num_stream_threads` stays.
        """
        self._active_lifecycle.require_active()
        return self._worker_threads.add_thread(self._inspected_by.inspect_threads)

    def remove_worker_thread(self, timeout: float | None = None) -> str:
        """Tell the thread that was added last to commit and leave, and return its name (KIP-663).

        Raises ConfigError for a worker's only thread; NotClosed after `timeout` seconds (default:
        shutdown_timeout_ms): the thread ends later, and another call removes another one.
        """
        self._active_lifecycle.require_active()
        return self._worker_threads.remove_thread(timeout, self._inspected_by.inspect_threads)

    def metadata_for_local_threads(self) -> list[ThreadMetadata]:
        """Return the threads of this worker with their tasks, as of now (Kafka Streams' name)."""
        return [describe_thread(thread) for thread in self._worker_threads.running]

    def all_local_store_partition_lags(self) -> dict[str, dict[int, StoreLag]]:
        """Return by store and partition how far each copy on this worker is behind its changelog.

        Those of tasks that process are not behind (Kafka Streams' allLocalStorePartitionLags).
        """
        return collect_store_lags(self._worker_threads.running)
