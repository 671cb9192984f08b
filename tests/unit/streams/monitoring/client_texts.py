"""Write texts as librdkafka writes its statistics, with the fields that figures are made of."""

from __future__ import annotations

import json
from typing import Any

from streams.runtime.clients.client_statistics import ClientStatistics, ClientStatisticsRecorder

US_PER_S = 1_000_000


def make_window(*values: int) -> dict[str, int]:
    return {"cnt": len(values), "sum": sum(values), "max": max(values, default=0)}


def make_broker(**fields: Any) -> dict[str, Any]:
    counts = dict.fromkeys(
        ("txerrs", "txretries", "req_timeouts", "rxerrs", "waitresp_cnt", "connects"), 0
    )
    windows = dict.fromkeys(("rtt", "throttle", "int_latency"), make_window())
    return {"state": "UP", "disconnects": 0, "req": {}} | counts | windows | fields


def make_partition(**fields: Any) -> dict[str, Any]:
    return {"fetch_state": "active", "ls_offset": -1001, "app_offset": -1001} | fields


def make_statistics(kind: str, at_s: int = 0, **fields: Any) -> dict[str, Any]:
    """Return the statistics of a client without brokers or topics that has counted nothing."""
    counts = ("tx", "rx", "tx_bytes", "rx_bytes", "txmsgs", "rxmsgs", "txmsg_bytes", "rxmsg_bytes")
    return {
        "name": "c#1",
        "type": kind,
        "ts": at_s * US_PER_S,
        "time": at_s,
        "brokers": {},
        "topics": {},
        "msg_size": 0,
        "msg_size_max": 0,
        **dict.fromkeys(counts, 0),
        **fields,
    }


def tell(*statistics: dict[str, Any], client_id: str = "c") -> list[ClientStatistics]:
    """Return what a recorder has when a client has told it these, one after the other."""
    recorder = ClientStatisticsRecorder()
    callback = recorder.create_client_settings(client_id)["stats_cb"]
    for each in statistics:
        callback(json.dumps(each))
    return list(recorder.read_statistics())
