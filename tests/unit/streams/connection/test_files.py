"""Files of --connection: three forms, paths relative to the file, and errors with their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from streams.connection.files import read_connection_file
from streams.errors import ConfigError

SECRET = "a-planted-secret"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.toml", '"sasl.password" = "p=1"\nssl.ca.location = "ca.pem"'),
        ("c.toml", '[connection]\nsasl.password = "p=1"\n"ssl.ca.location" = "ca.pem"'),
        ("c.json", '{"sasl.password": "p=1", "ssl": {"ca.location": "ca.pem"}}'),
        ("c.json", '{"connection": {"sasl.password": "p=1", "ssl.ca.location": "ca.pem"}}'),
        ("c.conf", "# comment\n\n sasl.password = p=1 \nssl.ca.location=ca.pem\n"),
    ],
)
def test_each_form_is_read_with_paths_below_the_files_directory(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    assert read_connection_file(tmp_path / name) == {
        "sasl.password": "p=1",
        "ssl.ca.location": str(tmp_path / "ca.pem"),
    }


def test_paths_from_the_root_and_from_home_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/user")
    file = tmp_path / "c.conf"
    file.write_text("ssl.ca.location=/etc/ca.pem\nsasl.password.file=~/secret\n")
    assert read_connection_file(file) == {
        "ssl.ca.location": "/etc/ca.pem",
        "sasl.password.file": "/home/user/secret",
    }


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("c.toml", f'"a" = "b"\n"sasl.password" = {SECRET}', r"is no TOML \(line 2, column \d+\)"),
        ("c.json", f'{{"a": 1,\n"sasl.password": {SECRET}}}', r"is no JSON \(line 2 column \d+\)"),
        ("c.json", f'["{SECRET}"]', "holds no object with settings"),
        ("c.conf", f"a=b\n\n{SECRET}\n", "line 3: not NAME=VALUE"),
    ],
)
def test_a_file_that_cannot_be_parsed_is_refused_with_the_place_and_no_text_of_it(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=message) as refused:
        read_connection_file(tmp_path / name)
    assert str(tmp_path / name) in str(refused.value)
    assert SECRET not in repr(refused.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "c.conf").write_bytes(b"sasl.password=\xff\xfe")
    for path in (tmp_path / "missing", tmp_path, tmp_path / "c.conf"):
        with pytest.raises(ConfigError, match=f"{path}' can't be read"):
            read_connection_file(path)
