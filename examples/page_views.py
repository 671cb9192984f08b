"""Count page views by region: join views with a table of users, and count them in windows.

    millrace run examples.page_views:app

It reads `page-views` (by user) and `users`, and writes `views-by-region`: how many pages the users
of each region viewed in each five minutes, corrected for a day as late views arrive. The grace is
so long because views go through a repartition topic: a worker that catches up reads some of them
hours of data apart (docs/windows.md).
"""

from datetime import timedelta

from millrace import App, Windowed, serdes, windows

View = dict[str, str]

app = App("page-views-by-region")
views = app.stream("page-views", key=serdes.string, value=serdes.json)
users = app.table("users", key=serdes.string, value=serdes.json)


def in_region(view: View, user: View | None) -> View:
    """Add the region of its user to a view, or UNKNOWN if the user is not in the table."""
    return {"page": view["page"], "region": "UNKNOWN" if user is None else user["region"]}


def as_row(window: Windowed[str], count: int) -> tuple[str, dict[str, object]]:
    """Return a window's number of views as a row keyed by region, with the window's times."""
    return window.key, {"from_ms": window.start_ms, "to_ms": window.end_ms, "views": count}


(
    views.left_join(users, in_region, value=serdes.json)
    .group_by(lambda _, view: view["region"], key=serdes.string)
    .windowed_by(windows.tumbling(timedelta(minutes=5), grace=timedelta(days=1)))
    .count(store="views-by-region")
    .to_stream()
    .map(as_row, key=serdes.string, value=serdes.json)
    .to("views-by-region")
)

if __name__ == "__main__":
    app.run()
