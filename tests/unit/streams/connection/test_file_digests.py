"""Test that a changed file has another digest, and that one which is unchanged isn't read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streams.connection.file_digests import FileDigests, digest_files
from streams.connection.settings import ConnectionSettings
from tests.unit.streams.runtime.fakes import Clock

PASSWORD, AUTHORITIES = "sasl.password.file", "ssl.ca.location"
CHECK_S = 2.0


class Watched:
    """Digests a password's file and a directory of authorities, and counts the reads."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.settings = ConnectionSettings(
            {PASSWORD: str(directory / "password"), AUTHORITIES: str(directory)}
        )
        self.clock = Clock()
        self.read: list[str] = []
        self._digests = FileDigests(self.settings, self.clock, self._read_file)

    def _read_file(self, path: Path) -> bytes:
        self.read.append(path.name)
        return path.read_bytes()

    def check(self, after_s: float = CHECK_S) -> dict[str, str]:
        """Digest the files `after_s` later; the digests are those of the files as they are now."""
        self.clock.advance_monotonic_clock(after_s)
        self.read.clear()
        found = dict(self._digests.digest_files())
        assert found == digest_files(self.settings)
        return found

    def settle(self) -> dict[str, str]:
        """Digest the files until they are not read any more."""
        self.check()
        self.check()
        found = self.check()
        assert self.read == []
        return found


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    (tmp_path / "password").write_text("first")
    (tmp_path / "ca.pem").write_text("an authority")
    return Watched(tmp_path)


def test_files_that_stay_as_they_are_are_read_no_more(watched: Watched) -> None:
    watched.check()
    assert sorted(watched.read) == ["ca.pem", "password", "password"]
    watched.settle()


def test_a_file_is_read_again_while_its_times_may_hide_a_change(watched: Watched) -> None:
    watched.check()
    for _ in range(3):
        watched.check(after_s=0.1)
        assert watched.read


def test_what_is_written_into_a_file_is_found(watched: Watched) -> None:
    before = watched.settle()
    (watched.directory / "password").write_text("other")  # as long as "first"
    after = watched.check()
    assert after[PASSWORD] != before[PASSWORD]
    assert after[AUTHORITIES] != before[AUTHORITIES]
    assert watched.settle() == after


def test_a_change_that_keeps_size_and_time_of_writing_is_found(watched: Watched) -> None:
    password = watched.directory / "password"
    before, status = watched.settle(), password.stat()
    password.write_text("other")
    os.utime(password, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert watched.check()[PASSWORD] != before[PASSWORD]


def test_a_file_that_takes_the_place_of_another_is_found(watched: Watched) -> None:
    before = watched.settle()
    replacement = watched.directory.parent / "replacement"
    replacement.write_text("other")
    replacement.replace(watched.directory / "password")
    assert watched.check()[PASSWORD] != before[PASSWORD]


def test_only_the_setting_whose_file_has_changed_is_read(watched: Watched) -> None:
    watched.settle()
    (watched.directory / "another.pem").write_text("another authority")
    watched.check()
    assert watched.read == ["another.pem", "ca.pem", "password"], "the directory alone"


def test_a_file_that_goes_and_comes_back_is_found(watched: Watched) -> None:
    before = watched.settle()
    (watched.directory / "password").unlink()
    assert watched.settle()[PASSWORD] != before[PASSWORD]
    (watched.directory / "password").write_text("first")
    assert watched.settle() == before


def test_a_volume_of_kubernetes_is_found_to_be_replaced(tmp_path: Path) -> None:
    def write_version(number: int, password: str) -> None:
        """Write another version of the volume, as the kubelet's AtomicWriter does."""
        version = tmp_path / f"..version_{number}"
        version.mkdir()
        for name, text in (("password", password), ("ca.pem", "an authority")):
            (version / name).write_text(text)
            # As files that a tool has copied with their times.
            os.utime(version / name, ns=(0, 0))
        (tmp_path / "..data_tmp").symlink_to(version.name)
        (tmp_path / "..data_tmp").rename(tmp_path / "..data")

    write_version(1, "first")
    for name in ("password", "ca.pem"):
        (tmp_path / name).symlink_to(f"..data/{name}")
    watched = Watched(tmp_path)
    before = watched.settle()
    write_version(2, "other")
    after = watched.check()
    assert after[PASSWORD] != before[PASSWORD]
    assert after[AUTHORITIES] != before[AUTHORITIES]
