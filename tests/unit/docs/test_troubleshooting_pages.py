"""Test that each code has a section, and that what pages quote is what the product says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streams.commands.root import COMMANDS, load_command
from streams.symptoms.lookup import find_by_message
from streams.symptoms.pages import require_section
from streams.symptoms.symptom import Symptom
from streams.symptoms.table import SYMPTOMS
from tests.unit.docs.page_examples import find_blocks
from tests.unit.streams.symptoms.source_texts import matches, read_texts

DOCS = Path(__file__).parents[3] / "docs"
PAGES = sorted((DOCS / "troubleshooting").glob("*.md"))
ADDRESS = re.compile(r" \(see (MR-\d{3})\)$")
PARTS = ("**What is seen.**", "**What it means.**", "**How to confirm.**", "**What to do.**")
MORE_PARTS = ("**How to prevent it.**", "**In Kafka Streams**")


COMMAND = re.compile(r"(?<![\w/-])millrace (?=[a-z])[^`|#\n]*(?:\n--[^`|#\n]*)?")


def find_wrong_commands(text: str) -> list[str]:
    """Return the command lines of a text that name no command, or an option that is not there."""
    wrong = []
    for line in COMMAND.findall(text):
        words = line.split()[1:]
        if words[0] not in COMMANDS:
            wrong.append(line)
            continue
        command = load_command(words[0])
        rest = words[1:]
        if rest and rest[0] in getattr(command, "commands", {}):
            command, rest = command.commands[rest[0]], rest[1:]
        elif hasattr(command, "commands") and not command.params:
            wrong.append(line)
            continue
        options = {name for each in command.params for name in each.opts}
        options |= {name for each in command.params for name in each.secondary_opts}
        given = {word.partition("=")[0] for word in rest if word.startswith("-")}
        if given - options - {"--help"}:
            wrong.append(line)
    return wrong


def list_quotes(language: str) -> list[tuple[str, str]]:
    """Return the lines of the blocks of a language with the names of their pages."""
    return [
        (page.name, line)
        for page in PAGES
        for block in find_blocks(page.read_text(), language)
        for line in block.splitlines()
    ]


def strip_prefix(quote: str) -> str:
    """Return a quoted message without the thread and its cause, which come from two texts."""
    return re.sub(r"^thread \d+ starts over from what is committed: ", "", quote)


def is_quoted_well(quote: str) -> bool:
    """Return whether some text of the product makes a quoted message, or its cause."""
    return any(
        matches(text, parts) for text in {quote, strip_prefix(quote)} for parts in read_texts()
    )


@pytest.mark.parametrize("symptom", SYMPTOMS, ids=lambda each: each.code)
def test_every_code_has_a_section(symptom: Symptom) -> None:
    section = require_section(symptom, DOCS / "troubleshooting")
    assert section.startswith(f"## {symptom.code}: ")
    if not symptom.is_general:
        assert [part for part in (*PARTS, *MORE_PARTS) if part not in section] == []


def test_every_section_is_of_a_code() -> None:
    written = [
        code for page in PAGES for code in re.findall(r"^## (MR-\d{3}): ", page.read_text(), re.M)
    ]
    assert sorted(written) == sorted(each.code for each in SYMPTOMS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_exists_with_its_options(page: Path) -> None:
    spans = re.findall(r"`([^`]+)`|^(millrace .*)$", page.read_text(), re.M)
    assert find_wrong_commands("\n\n".join(one or other for one, other in spans)) == []


def test_a_command_that_does_not_exist_is_found() -> None:
    text = "millrace txn list --all\nmillrace txn lists\nmillrace consume T --form 3\n"
    assert find_wrong_commands(text) == text.splitlines()[1:]


@pytest.mark.parametrize(("page", "quote"), list_quotes("text"))
def test_every_message_that_a_page_quotes_is_one_of_the_products(page: str, quote: str) -> None:
    assert is_quoted_well(ADDRESS.sub("", quote)), f"{page} quotes what nothing says: {quote}"


def test_a_message_that_has_changed_is_found() -> None:
    assert is_quoted_well("store 'a' of task 0_0 is rebuilt from its changelog: ...")
    assert not is_quoted_well("store 'a' of task 0_0 is made anew from its changelog: ...")


@pytest.mark.parametrize(("page", "quote"), list_quotes("text"))
def test_the_address_that_a_quoted_message_ends_with_is_that_of_its_code(
    page: str, quote: str
) -> None:
    address, symptom = ADDRESS.search(quote), find_by_message(quote)
    if address and symptom:
        assert address[1] == symptom.code, page


def test_the_page_of_all_codes_lists_each_with_its_section() -> None:
    text = (DOCS / "troubleshooting" / "index.md").read_text()
    listed = re.findall(r"^\| \[(MR-\d{3})\]\(([\w-]+\.md)#([\w-]+)\) \| (.*) \|$", text, re.M)
    expected = [
        (each.code, each.page, make_anchor(each.code, each.page), each.meaning)
        for each in sorted(SYMPTOMS, key=lambda each: each.code)
    ]
    assert listed == expected


def make_anchor(code: str, page: str) -> str:
    """Return the anchor of the section of a code, as GitHub and the site make it."""
    text = (DOCS / "troubleshooting" / page).read_text()
    [heading] = re.findall(rf"^## ({code}: .*)$", text, re.M)
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
