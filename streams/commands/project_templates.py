"""Hold the files of a new project, for `millrace new`: an application that counts words.

`$name` is the application id and the name of the directory; `$input` and `$output` are topics.
"""

from __future__ import annotations

APPLICATION = '''\
"""Count the words of the lines in the topic $input, exactly once, into the topic $output."""

from millrace import App, serdes

app = App("$name", state_dir="state")

lines = app.stream("$input", key=serdes.string, value=serdes.string)
counts = (
    lines.flat_map_values(lambda line: line.lower().split())
    .group_by(lambda _, word: word, key=serdes.string)
    .count(store="counts")
)
counts.to_stream().to("$output", key=serdes.string, value=serdes.int64)

if __name__ == "__main__":
    app.run()
'''

TEST = '''\
"""Test the application without a broker: its real stores and commits, with records of our own."""

import pytest

from app import app
from millrace import TopologyTestDriver


@pytest.fixture
def driver():
    with TopologyTestDriver(app, partitions={"$input": 2}) as driver:
        yield driver


def test_words_are_counted(driver):
    driver.topic("$input").pipe(None, "to be or not to be")
    assert driver.topic("$output").read_table() == {"to": 2, "be": 2, "or": 1, "not": 1}


def test_a_crash_counts_nothing_twice(driver):
    driver.topic("$input").pipe(None, "to be")
    driver.crash()
    driver.restart()
    driver.topic("$input").pipe(None, "to do")
    assert driver.topic("$output").read_table() == {"to": 2, "be": 1, "do": 1}
'''

README = """\
# $name

Counts the words of the lines in the topic `$input`, exactly once, into the topic `$output`. An
application of Millrace.

```sh
pip install -r requirements.txt               # see there where Millrace comes from
pytest                                        # no broker is needed
millrace create-topics $input $output --state-dir state
millrace run app:app --reload                 # starts a broker below ./state, or finds it
```

In another terminal, in this directory:

```sh
export MILLRACE_STATE_DIR=state
millrace produce $input "to be or not to be"
millrace consume $output --value-serde int64
millrace group describe app:app
millrace group reset app:app                  # begin anew, when no worker runs
```

On a Kafka of your own, add `--bootstrap-servers host:port` to each command.
"""

REQUIREMENTS = """\
# Millrace is not published yet. An environment without it, as in CI, needs the path of a clone of
# its repository in place of the name (such as ../millrace), or `millrace-streams @ git+` and the
# address of that repository. `millrace` on the package index is another project.
millrace-streams
pytest
"""

WORKFLOW = """\
name: test
on: [push, pull_request]
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.11"
      # Millrace comes from its repository: name that in requirements.txt, which says how.
      - run: pip install -r requirements.txt
      - run: pytest
"""

FILES = {
    "app.py": APPLICATION,
    "test_app.py": TEST,
    "README.md": README,
    "requirements.txt": REQUIREMENTS,
    ".gitignore": "state/\n__pycache__/\n.pytest_cache/\n",
    ".github/workflows/test.yml": WORKFLOW,
}
"""The files of a project by their path in its directory."""
