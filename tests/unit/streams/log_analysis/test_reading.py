"""Test how logs are read: formats, compression, damage, memory."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import cramjam
import pytest

from streams.errors import ConfigError
from streams.log_analysis.events import find_subjects
from streams.log_analysis.headers import read_header
from streams.log_analysis.report import analyze_logs
from streams.log_analysis.scanning import LogScanner
from streams.log_analysis.sources import BLOCK_BYTES, LogSource
from tests.logs.generated import write_log

FENCED = (
    b"2026-11-29 04:53:56,862 1 WARNING streams.runtime: thread 0 starts over from what is "
    b"committed: poll: fenced (_FENCED)\n"
)
QUIET = b"2026-11-29 04:53:55,000 1 INFO streams.runtime.threads: thread 0 runs tasks 0_0\n"


def find_codes(*blocks: bytes) -> list[str]:
    scanner = LogScanner("a.log")
    return [event.pattern.code for block in blocks for event in scanner.find_events(block)]


@pytest.mark.parametrize(
    ("line", "at", "is_warning", "message"),
    [
        (b"2026-11-29 04:53:56,862 1 WARNING a.b: it", "2026-11-29 04:53:56", True, "a.b: it"),
        (b"[2026-11-29 04:53:56,862] INFO it (a.B)", "2026-11-29 04:53:56", False, "it (a.B)"),
        (b"2026-11-29T04:53:56.862 [t-1] ERROR a.B - it", "2026-11-29 04:53:56", True, "a.B - it"),
    ],
)
def test_each_format_has_a_time_and_a_level(
    line: bytes, at: str, is_warning: bool, message: str
) -> None:
    header = read_header(line)
    assert header is not None
    assert header.at_s == datetime.fromisoformat(at).timestamp() + 0.862
    assert (header.is_warning, header.message) == (is_warning, message)


def test_a_line_of_json_has_the_time_of_its_zone() -> None:
    header = read_header(b'{"time":"2026-11-29T04:54:18Z","level":"error","message":"it"}')
    assert header is not None
    assert header.at_s == datetime.fromisoformat("2026-11-29T04:54:18+00:00").timestamp()
    assert header.is_warning
    assert read_header(b'{"time":"2026-11-29T04:54:18.724Z","level":"err') is not None
    assert read_header(b'{"other": 1}') is None


def test_a_part_that_says_too_little_counts_in_warnings_only() -> None:
    assert find_codes(FENCED) == ["MR-010"]
    assert find_codes(FENCED.replace(b"WARNING", b"INFO").replace(b" starts over", b"")) == []


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        (b"millrace: topic 'x' at offset 5: no text that is known (see MR-070)", ["MR-070"]),
        (b"2026-11-29 04:53:56,862 7 WARNING a.b: no text that is known (see MR-052)", ["MR-052"]),
        (b"2026-11-29 04:53:56,862 7 INFO a.b: no text that is known (see MR-052)", []),
        (b"millrace: worker 7 was ended by SIGKILL: started again", ["MR-083"]),
        (b"millrace: health_port 8080 on 127.0.0.1: Address already in use", ["MR-001"]),
    ],
)
def test_a_line_with_a_code_counts_whatever_else_it_says(line: bytes, codes: list[str]) -> None:
    assert find_codes(line + b"\n") == codes


def test_a_line_of_a_stack_trace_has_the_time_of_the_line_that_began_it() -> None:
    trace = (
        b"java.lang.X: b\nCaused by: org.apache.kafka.common.errors.ProducerFencedException: c\n"
    )
    header = b"[2026-11-29 04:53:56,862] ERROR a (b.C)\n"
    for blocks in ([header + trace], [QUIET + header, trace]):
        scanner = LogScanner("a.log")
        [event] = [event for block in blocks for event in scanner.find_events(block)]
        assert event.at_s == datetime.fromisoformat("2026-11-29 04:53:56.862").timestamp()


def compress_zstd(data: bytes) -> bytes:
    return bytes(cramjam.zstd.compress(data))


def compress_lz4(data: bytes) -> bytes:
    return bytes(cramjam.lz4.compress(data))


@pytest.mark.parametrize("compress", [bytes, gzip.compress, compress_zstd, compress_lz4])
def test_compressed_logs_are_read_as_they_are(
    compress: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tmp_path / "worker.log"
    path.write_bytes(compress(QUIET * 40_000 + FENCED + QUIET * 1_000))
    size = path.stat().st_size
    source = LogSource(str(path))
    assert sum(map(len, source.read_blocks())) == 41_000 * len(QUIET) + len(FENCED)
    [incident] = analyze_logs([source]).incidents
    assert incident.cause == "MR-010"
    assert path.stat().st_size == size


@pytest.mark.parametrize("compress", [gzip.compress, compress_zstd, compress_lz4])
def test_a_compressed_log_that_is_cut_off_is_named(
    compress: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tmp_path / "worker.log"
    path.write_bytes(compress(os.urandom(50_000))[:-20])
    with pytest.raises(ConfigError, match=r"log '.*worker\.log' can't be read: "):
        list(LogSource(str(path)).read_blocks())


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_standard_input_may_be_compressed(
    compress: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    piped = io.TextIOWrapper(io.BufferedReader(io.BytesIO(compress(QUIET + FENCED))))
    monkeypatch.setattr(sys, "stdin", piped)
    [incident] = analyze_logs([LogSource("-")]).incidents
    assert incident.cause == "MR-010"


def test_standard_input_that_is_compressed_otherwise_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    piped = io.TextIOWrapper(io.BufferedReader(io.BytesIO(compress_zstd(FENCED))))
    monkeypatch.setattr(sys, "stdin", piped)
    with pytest.raises(ConfigError, match=r"as in `zstd -dc FILE"):
        analyze_logs([LogSource("-")])


@pytest.mark.parametrize("is_cut", [False, True], ids=["renamed", "cut"])
def test_a_followed_log_goes_on_after_it_was_rotated(is_cut: bool, tmp_path: Path) -> None:
    path = tmp_path / "worker.log"
    path.write_bytes(QUIET * 3)
    blocks = LogSource(str(path), follows=True).read_blocks()
    assert next(blocks) == QUIET * 3
    if not is_cut:
        path.rename(tmp_path / "worker.log.1")
    path.write_bytes(FENCED)
    assert next(blocks) == FENCED


def test_a_log_that_does_not_exist_is_named() -> None:
    with pytest.raises(ConfigError, match=r"log 'none\.log' can't be read: No such file"):
        analyze_logs([LogSource("none.log")])


@pytest.mark.parametrize("before", range(BLOCK_BYTES - 200, BLOCK_BYTES + 1, 40))
def test_a_line_between_two_blocks_is_found_once(before: int, tmp_path: Path) -> None:
    path = tmp_path / "worker.log"
    path.write_bytes((QUIET * (before // len(QUIET) + 1))[:before] + b"\n" + FENCED + QUIET * 3)
    assert analyze_logs([LogSource(str(path))]).incidents[0].events == {"fencing": 1}


def test_a_long_line_and_bytes_that_are_no_text_end_nothing(tmp_path: Path) -> None:
    path = tmp_path / "worker.log"
    path.write_bytes(b"x" * (6 * BLOCK_BYTES) + b"\xff\x00\n" + FENCED + b"\xffcut")
    assert [each.cause for each in analyze_logs([LogSource(str(path))]).incidents] == ["MR-010"]


_MEASURE = """
import re, sys
from pathlib import Path
from streams.log_analysis.report import analyze_logs
from streams.log_analysis.sources import LogSource
analysis = analyze_logs([LogSource(sys.argv[1])])
[peak] = re.findall(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
print(len(analysis.incidents), peak)
"""


def measure(path: Path) -> tuple[int, int]:
    """Return the number of incidents, and the peak of memory in KiB, of a process of its own."""
    command = [sys.executable, "-c", _MEASURE, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    incidents, peak_kib = map(int, done.stdout.split())
    return incidents, peak_kib


@pytest.mark.parametrize("quiet_lines", [2_000, 0], ids=["few faults", "nothing but faults"])
def test_the_memory_does_not_grow_with_the_log(quiet_lines: int, tmp_path: Path) -> None:
    small, large = tmp_path / "small.log", tmp_path / "large.log"
    write_log(small, 1_000_000, quiet_lines)
    write_log(large, 32_000_000, quiet_lines)
    (few, small_kib), (many, large_kib) = measure(small), measure(large)
    assert many >= few > 0
    assert large_kib - small_kib < 20_000


def test_a_topic_is_a_name_and_no_word_of_the_sentence() -> None:
    assert dict(find_subjects("another topic or partition")) == {}
    assert dict(find_subjects("input topic 'lines' is gone"))["topic"] == "lines"
    assert dict(find_subjects("processorNode=p, topic=lines, partition=0"))["topic"] == "lines"
