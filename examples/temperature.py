"""Watch temperatures: report each sensor's highest of each minute, once the minute is over.

    millrace run examples.temperature:app

It reads `temperatures` (by sensor) and writes `heat-alerts` where a minute's highest is above a
limit. Readings may be ten seconds late. `suppress` holds every result back until no reading can
change it any more, so an alert is never taken back.
"""

from datetime import timedelta

from millrace import App, Windowed, serdes, until_window_closes, windows

LIMIT = 30.0


def as_alert(minute: Windowed[str], highest: float) -> tuple[str, dict[str, float]]:
    """Return the highest temperature of a minute as an alert keyed by its sensor."""
    return minute.key, {"minute_ms": minute.start_ms, "highest": highest}


app = App("temperature")
(
    app.stream("temperatures", key=serdes.string, value=serdes.float64)
    .group_by_key()
    .windowed_by(windows.tumbling(timedelta(minutes=1), grace=timedelta(seconds=10)))
    .reduce(max, store="highest", commutative=True)
    .suppress(until_window_closes())
    .to_stream()
    .filter(lambda _, highest: highest > LIMIT)
    .map(as_alert, key=serdes.string, value=serdes.json)
    .to("heat-alerts")
)

if __name__ == "__main__":
    app.run()
