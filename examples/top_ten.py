"""Rank songs: keep the ten songs of each genre that were played most, always up to date.

    millrace run examples.top_ten:app

It reads `plays` (by listener) and `songs`, a global table, which every worker has the whole of, and
writes `top-ten` by genre. The table of counts is grouped by genre: when the count of a song
changes, its old place is taken out of the list and its new one put in.
"""

from typing import Any

from millrace import App, Store, serdes

KEPT_SONGS = 100
"""A song that is pushed off the list must be there to come back when another leaves it."""

Ranked = list[list[Any]]

app = App("top-ten")
songs = app.global_table("songs", key=serdes.string, value=serdes.json)


def insert_song(song: str, played: dict[str, Any], ranked: Ranked) -> Ranked:
    """Return the ranking with a song inserted at its rank."""
    return sorted([*ranked, [played["plays"], song, played["title"]]], reverse=True)[:KEPT_SONGS]


def remove_song(song: str, played: dict[str, Any], ranked: Ranked) -> Ranked:
    """Return the ranking without a given song."""
    return [row for row in ranked if row[1] != song]


plays = app.stream("plays", key=serdes.string, value=serdes.json).join(
    songs,
    lambda play, song: {**song, "song": play["song"]},
    key=lambda _, play: play["song"],
    value=serdes.json,
)
by_song = plays.group_by(lambda _, play: play["song"], key=serdes.string).aggregate(
    lambda: {"plays": 0},
    lambda _, play, seen: {**play, "plays": seen["plays"] + 1},
    value=serdes.json,
    store="plays-by-song",
)
(
    by_song.group_by(
        lambda song, seen: (seen["genre"], {**seen, "song": song}),
        key=serdes.string,
        value=serdes.json,
    )
    .aggregate(
        list,
        lambda _, seen, ranked: insert_song(seen["song"], seen, ranked),
        lambda _, seen, ranked: remove_song(seen["song"], seen, ranked),
        value=serdes.json,
        store=Store.persistent("ranked-songs"),
    )
    .map_values(lambda ranked: [[title, count] for count, _, title in ranked[:10]])
    .to_stream()
    .to("top-ten")
)

if __name__ == "__main__":
    app.run()
