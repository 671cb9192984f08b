"""Test the check of a schema registry's settings, and that their secrets stay out of texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streams.connection.registry_settings import parse_schema_registry
from streams.errors import ConfigError

URL = {"url": "https://registry:8081"}
SECRET = "a-planted-secret"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"basic.auth.user.info": SECRET}, "url is missing"),
        ({"url": "registry:8081"}, "url is no http:// or https:// address"),
        ({"url": "https://a:1,b:1"}, "url is no http:// or https:// address"),
        ({**URL, "basic.auth.user.inf": SECRET}, "did you mean 'basic.auth.user.info'"),
        ({**URL, "basic.auth.credentials.source": SECRET}, "set basic.auth.user.info"),
        ({**URL, "ssl.truststore.location": SECRET}, "set ssl.ca.location"),
        ({**URL, "ssl.key.password": ""}, "ssl.key.password is empty"),
        ({**URL, "ssl.key.password": [SECRET]}, "can't be a list: it is text"),
        ({**URL, "ssl.ca.location": "-----BEGIN CERTIFICATE-----"}, "the path of a file"),
        ({**URL, "ssl.key.location": "a.key"}, "a client certificate needs its key"),
        ({**URL, "timeout": "soon"}, "timeout can't be 'soon': it is a number"),
        (
            {**URL, "ssl.key.password": SECRET, "ssl.key.password.file": "a"},
            "give ssl.key.password or ssl.key.password.file",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^schema_registry: .*{message}") as refused:
        parse_schema_registry(given)
    assert SECRET not in str(refused.value)


def test_numbers_may_be_text_and_several_urls_are_one_text() -> None:
    settings = parse_schema_registry({"url": "http://a:1, http://b:1", "timeout": "5"})
    assert settings.with_secret_files_read() == {"url": "http://a:1, http://b:1", "timeout": 5.0}


def test_a_secret_may_be_in_a_file_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "user"
    file.write_text(f"user:{SECRET}\n")
    settings = parse_schema_registry({**URL, "basic.auth.user.info.file": str(file)})
    assert settings.with_secret_files_read() == {**URL, "basic.auth.user.info": f"user:{SECRET}"}
    file.unlink()
    with pytest.raises(
        ConfigError, match=r"schema_registry: basic\.auth\.user\.info\.file '.*user"
    ):
        settings.with_secret_files_read()


def test_no_secret_is_in_a_text_of_the_settings() -> None:
    settings = parse_schema_registry(
        {
            "url": f"https://user:{SECRET}@a:1, https://b:1",
            "basic.auth.user.info": f"user:{SECRET}",
            "bearer.auth.client.secret": SECRET,
            "bearer.auth.token": SECRET,
            "proxy": f"http://user:{SECRET}@proxy:1",
            "ssl.ca.location": "ca.pem",
        }
    )
    assert SECRET not in repr(settings) + str(settings) + str(settings.hide_secrets())
    shown = settings.hide_secrets()
    assert (shown["url"], shown["ssl.ca.location"]) == ("https://a:1,https://b:1", "ca.pem")
