"""Test that a file and standard input have one definition of a line."""

from __future__ import annotations

import io
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.commands.input_lines import read_lines, require_known_encoding
from streams.errors import ConfigError

TEXT = "Main St.\rBerlin\n\r\r\n\nä\u2028ö\u0085\x0b\x0c\x00\x1cend\r\nlast\r"
LINES = ["Main St.\rBerlin", "\r", "", "ä\u2028ö\u0085\x0b\x0c\x00\x1cend", "last\r"]


class Dribble(io.BytesIO):
    """Returns few bytes at once, as a pipe does."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(size or 3, 3))


def texts(stream: BinaryIO | bytes, encoding: str = "utf-8", first: int = 1) -> list[str]:
    opened = io.BytesIO(stream) if isinstance(stream, bytes) else stream
    return [
        each.text
        for each in read_lines(opened, require_known_encoding(encoding, "--encoding"), first)
    ]


def refusal(data: bytes, encoding: str = "utf-8", first: int = 1) -> str:
    with pytest.raises(ConfigError) as raised:
        texts(data, encoding, first)
    return str(raised.value)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("create_stream", [io.BytesIO, Dribble])
def test_a_line_ends_with_lf_or_crlf_and_keeps_all_other_characters(
    encoding: str, create_stream: type[io.BytesIO]
) -> None:
    assert texts(create_stream(TEXT.encode(encoding)), encoding) == LINES


any_line = st.text(st.characters(codec="utf-8", exclude_characters="\n\ufeff")).map(
    lambda text: text.rstrip("\r")
)


@given(st.lists(st.tuples(any_line, st.sampled_from(["\n", "\r\n"]))), any_line)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-32", "gb18030", "utf-7"])
def test_any_lines_are_read_as_they_were_written(
    encoding: str, ended: list[tuple[str, str]], last: str
) -> None:
    data = "".join(f"{text}{end}" for text, end in ended) + last
    lines = [text for text, _ in ended] + [last] * bool(last)
    assert texts(data.encode(encoding), encoding) == lines


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32-be"])
def test_a_byte_order_mark_is_no_part_of_the_first_line(encoding: str) -> None:
    marked = encoding if encoding == "utf-16" else f"{encoding}-marked"
    data = ("" if marked == encoding else "\ufeff") + "k:1\n\ufeffx\n"
    assert texts(data.encode(encoding), encoding) == ["k:1", "\ufeffx"]
    assert texts("\ufeff".encode("utf-8")) == []


def test_encodings_of_one_byte_or_more_are_read() -> None:
    assert texts("Müller\nGroß\r\n".encode("latin-1"), "latin-1") == ["Müller", "Groß"]
    assert texts("a€\r\n".encode("cp1252"), "windows-1252") == ["a€"]
    assert texts("表\n示\n".encode("shift_jis"), "sjis") == ["表", "示"]
    assert texts("one\ntwo\n".encode("cp037"), "cp037") == ["one", "two"]


def test_a_line_that_the_encoding_cannot_read_is_named_and_those_before_it_are_read() -> None:
    lines = read_lines(io.BytesIO("a\nb\nMüller\nc".encode("latin-1")), "utf-8")
    assert [next(lines).text, next(lines).text] == ["a", "b"]
    with pytest.raises(ConfigError, match=r"line 3 is no utf-8: b'\\xfc' at byte 2; give the "):
        next(lines)
    assert "line 2 is no utf-16-le" in refusal("a\nb".encode("utf-16") + b"x", "utf-16")


def test_the_first_line_to_be_read_keeps_its_number() -> None:
    lines = list(read_lines(io.BytesIO(b"a\nb\nc"), "utf-8", 2))
    assert [(each.place, each.text) for each in lines] == [("line 2", "b"), ("line 3", "c")]
    assert texts(b"a\nb\nc", first=4) == []
    assert "--from-line 5: the last line of the input is 3" in refusal(b"a\nb\nc", first=5)
    assert "--from-line 2: the last line of the input is 0" in refusal(b"", first=2)
    # What can't be read before the first line is left out too.
    assert texts(b"\xff\nb", first=2) == ["b"]


def test_the_mark_of_another_encoding_is_refused_with_that_encoding() -> None:
    assert "mark of utf-16-le, and is to be read as utf-8: give --encoding utf-16" in refusal(
        "a".encode("utf-16")
    )
    assert "give --encoding utf-8" in refusal("\ufeffa".encode(), "utf-16")
    assert "no byte order mark: give --encoding utf-16-le or utf-16-be" in refusal(
        "a\n".encode("utf-16-le"), "utf-16"
    )
    assert texts(b"", "utf-16") == []


@pytest.mark.parametrize("name", ["utf9", "hex", "rot13", "a\0b", ""])
def test_what_is_no_encoding_is_refused_by_its_option(name: str) -> None:
    with pytest.raises(ConfigError, match=r"--encoding .* is no encoding: give utf-8"):
        require_known_encoding(name, "--encoding")
