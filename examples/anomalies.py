"""Detect anomalies: group failed logins into sessions, and report each suspicious session once.

    millrace run examples.anomalies:app

It reads `logins` (by account; a value says whether it failed) and writes `suspicious-logins`.
Failed attempts with less than five minutes between them are one session; one with ten attempts or
more is reported when it is over, once.
"""

from datetime import timedelta
from typing import Any

from millrace import App, Windowed, serdes, windows

SUSPICIOUS = 10


def add_attempt(account: str, login: dict[str, Any], seen: dict[str, Any]) -> dict[str, Any]:
    """Add a failed login to its session's number of attempts and set of addresses."""
    return {"attempts": seen["attempts"] + 1, "from": sorted({*seen["from"], login["from"]})}


def merge_sessions(account: str, one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Merge the attempts and addresses of two sessions that a login has joined into one."""
    return {
        "attempts": one["attempts"] + other["attempts"],
        "from": sorted({*one["from"], *other["from"]}),
    }


def as_alert(session: Windowed[str], seen: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a session as an alert keyed by its account, with its first and last time."""
    return session.key, {**seen, "first_ms": session.start_ms, "last_ms": session.end_ms}


app = App("anomalies")
(
    app.stream("logins", key=serdes.string, value=serdes.json)
    .filter(lambda _, login: login["failed"])
    .group_by_key()
    .windowed_by(windows.session(timedelta(minutes=5), grace=timedelta(seconds=30)))
    .aggregate(
        lambda: {"attempts": 0, "from": []},
        add_attempt,
        merger=merge_sessions,
        value=serdes.json,
        store="failed-logins",
        emit="on_close",
    )
    .to_stream()
    .filter(lambda _, seen: seen["attempts"] >= SUSPICIOUS)
    .map(as_alert, key=serdes.string, value=serdes.json)
    .to("suspicious-logins")
)

if __name__ == "__main__":
    app.run()
