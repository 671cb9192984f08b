"""Count words: how often each word occurs in the lines of a topic, exactly once.

    millrace run examples.word_count:app --workers 2

It reads the topic `lines` and writes `counts-by-word`, both of which must exist.
"""

import os

from millrace import App, serdes

# With a suffix of its own a run can share a broker with others (the demo does so).
SUFFIX = os.environ.get("WORD_COUNT_SUFFIX", "")

app = App(f"word-count{SUFFIX}")
counts = (
    app.stream(f"lines{SUFFIX}", key=serdes.string, value=serdes.string)
    .flat_map_values(str.split)
    .group_by(lambda _, word: word, key=serdes.string)
    .count(store="counts")
)
counts.to_stream().to(f"counts-by-word{SUFFIX}")

if __name__ == "__main__":
    app.run()
