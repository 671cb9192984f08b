"""Say at the start of a worker what runs: the first thing to look at when something is odd."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from streams.common.addresses import format_address
from streams.settings.config import EMBEDDED, StreamsConfig
from streams.topology.build import Topology
from streams.version import VERSION

log = logging.getLogger(__name__)


def announce_start(
    topology: Topology,
    config: StreamsConfig,
    *,
    bootstrap_servers: str,
    directory: Path,
    ports: Mapping[str, int],
    worker_number: int,
    worker_count: int,
) -> None:
    """Log in one line what this worker runs, where, and where to look at it.

    The numbers begin at 0. In JSON each part has a field of its own.
    """
    reads = [*topology.input_topics, *sorted({each.topic for each in topology.global_tables})]
    reads += [f"topics matching {pattern.expression}" for pattern in topology.patterns]
    writes = list_output_topics(topology)
    broker = bootstrap_servers
    if config.bootstrap_servers == EMBEDDED:
        broker += " (the embedded broker)"
    query_scheme = "http" if config.query_ssl_certificate_location is None else "https"
    served = [
        f"{query_scheme}://{format_address((config.query_host, port))}/stores"
        if setting == "query_port"
        else f"http://{format_address((config.health_host, port))}/{setting.removesuffix('_port')}"
        for setting, port in ports.items()
    ]
    parts = [
        f"millrace {VERSION} runs {topology.application_id!r} on {broker}",
        config.processing_guarantee,
        f"reads {', '.join(reads) or 'nothing'}",
        f"writes {', '.join(writes) or 'nothing'}",
        f"worker {worker_number + 1} of {worker_count}",
        f"threads {config.num_stream_threads}",
        f"state in {directory}",
        ", ".join(served) or "no health_port",
    ]
    fields = {
        "version": VERSION,
        "application_id": topology.application_id,
        "bootstrap_servers": bootstrap_servers,
        "processing_guarantee": config.processing_guarantee,
        "reads": reads,
        "writes": writes,
        "worker": worker_number + 1,
        "workers": worker_count,
        "threads": config.num_stream_threads,
        "state_directory": str(directory),
        **ports,
    }
    log.info("; ".join(parts), extra=fields)


def list_output_topics(topology: Topology) -> list[str]:
    """Return the topics that an application writes for others, sorted; a function may add more."""
    topics = [
        sink.topic for sub in topology.subtopologies for sink in sub.sinks if not sink.internal
    ]
    names = sorted({topic for topic in topics if isinstance(topic, str)})
    return names if all(isinstance(t, str) for t in topics) else [*names, "topics by a function"]
