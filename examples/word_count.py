"""Word count: how often each word occurs in the lines of a topic, exactly once.

    millrace run examples.word_count:app --workers 2

reads the topic `lines` and writes `counts-by-word`, both of which must exist.
"""

import re

from streams import App, serdes

WORD = re.compile(r"\w+")

app = App("word-count")
counts = (
    app.stream("lines", key=serdes.string, value=serdes.string)
    .flat_map_values(WORD.findall)
    .group_by(lambda _, word: word, key=serdes.string)
    .count(store="counts")
)
counts.to_stream().to("counts-by-word")

if __name__ == "__main__":
    app.run()
