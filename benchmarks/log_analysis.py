"""Measure how fast logs are analyzed, and in how much memory: `python -m benchmarks.log_analysis`.

The log is generated: recorded faults, with ten quiet minutes between two. It prints the rates of
plain and of compressed files, by the clock and by the processor's time, the peak of the process's
memory for each size, what the same search costs with Python's `re`, and what a look-up of a message
without a symptom takes.
"""

from __future__ import annotations

import argparse
import gzip
import re
import shutil
import subprocess
import sys
import tempfile
import time
import timeit
from pathlib import Path

from streams.log_analysis.patterns import PATTERNS
from streams.log_analysis.scanning import compile_patterns
from streams.symptoms.lookup import find_by_message
from tests.logs.generated import write_log

_MEGABYTE = 1_000_000
_ANALYZE = """
import re, sys, time
from pathlib import Path
from streams.log_analysis.report import analyze_logs
from streams.log_analysis.sources import LogSource
began, processed = time.monotonic(), time.process_time()
analysis = analyze_logs([LogSource(sys.argv[1])])
took, busy = time.monotonic() - began, time.process_time() - processed
[peak] = re.findall(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
print(analysis.bytes, took, busy, peak, len(analysis.incidents))
"""


def measure_file(path: Path) -> None:
    """Analyze a file in a process of its own, and print the rate and the peak of its memory."""
    command = [sys.executable, "-c", _ANALYZE, str(path)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    size, took_s, busy_s, peak_kib, incidents = map(float, printed)
    print(
        f"{path.name}: {size / _MEGABYTE:,.0f} MB in {took_s:.1f} s, "
        f"{size / _MEGABYTE / took_s:,.0f} MB/s, {size / _MEGABYTE / busy_s:,.0f} MB for a second "
        f"of the processor, peak {peak_kib / 1024:,.0f} MiB, "
        f"{incidents:,.0f} incidents"
    )


def compare_searches(path: Path) -> None:
    """Print the rates at which re2 and Python's re search a block for all patterns."""
    with path.open("rb") as file:
        block = file.read(8 << 20)
    texts = sorted({each.text for each in PATTERNS})
    plain = re.compile(b"|".join(re.escape(text).encode() for text in texts))
    for name, expression in (("re2", compile_patterns()), ("re", plain)):
        list(expression.finditer(block[:1000]))  # which builds what is needed once
        began_s = time.process_time()
        count = sum(1 for _ in expression.finditer(block))
        rate = len(block) / _MEGABYTE / (time.process_time() - began_s)
        print(f"search of {len(texts)} texts by {name}: {rate:,.0f} MB/s, {count} found")


def main() -> None:
    """Write the logs, and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=500)
    megabytes = parser.parse_args().megabytes
    with tempfile.TemporaryDirectory() as directory:
        for size in (megabytes // 10, megabytes):
            path = Path(directory, f"{size}-mb.log")
            write_log(path, size * _MEGABYTE)
            measure_file(path)
        compare_searches(path)
        packed = path.with_suffix(".log.gz")
        with path.open("rb") as plain, gzip.open(packed, "wb", compresslevel=6) as target:
            shutil.copyfileobj(plain, target)
        measure_file(packed)
    message = "state RUNNING -> REBALANCING, which is a line of the log that names no fault"
    count = 10_000
    took_s = timeit.timeit(lambda: find_by_message(message), number=count)
    print(f"look-up of a message without a symptom: {took_s / count * 1e6:.1f} us")


if __name__ == "__main__":
    main()
