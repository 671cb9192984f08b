"""The page about secured clusters names every setting of a connection, and its examples work."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from streams.connection import settings as connection
from streams.connection.files import flatten_tables
from streams.connection.settings import parse_connection
from tests.unit.docs.page_examples import find_blocks

PAGE = Path(__file__).parents[3].joinpath("docs/security.md").read_text()
EXAMPLES = find_blocks(PAGE, "toml")


def named_settings() -> set[str]:
    """Return the settings that the page names, with those that it derives by `.pem`."""
    named = set(re.findall(r"`((?:security|ssl|sasl|https|enable|oauth)[a-z._]+)`", PAGE))
    pems = {name.replace(".location", ".pem") for name in named if name.endswith(".location")}
    return named | (pems & connection._KNOWN)


def test_every_setting_is_on_the_page_and_every_name_there_is_one() -> None:
    assert connection._KNOWN - named_settings() == set()
    of_brokers = {"ssl.principal.mapping.rules"}
    assert named_settings() - connection._KNOWN == of_brokers


@pytest.mark.parametrize("example", EXAMPLES)
def test_each_example_is_a_connection(example: str) -> None:
    assert parse_connection(dict(flatten_tables(tomllib.loads(example))))


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 2
