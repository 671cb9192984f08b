"""Name the symptom whose page says more about a fault, by the point at which it was found."""

from __future__ import annotations

from dataclasses import replace

from streams.doctor.findings import CONNECTION, DoctorFinding, Verdict
from streams.symptoms.lookup import find_by_message, find_by_text

CODES = {
    "connection": "MR-040",
    "brokers": "MR-040",
    "latency of brokers": "MR-063",
    "release": "MR-015",
    "retention of offsets": "MR-022",
    "partition leaders": "MR-042",
    "load of coordinators": "MR-041",
    "certificates": "MR-043",
    "token": "MR-043",
    "rights": "MR-044",
    "disk space": "MR-062",
    "inodes": "MR-062",
    "disks of brokers": "MR-062",
    "memory limit": "MR-061",
    "guarantee": "MR-053",
    "transaction time-out": "MR-012",
    "topics": "MR-025",
    "inputs": "MR-025",
    "internal topics": "MR-025",
    "partitions of internal topics": "MR-025",
    "internal settings": "MR-024",
    "changelogs": "MR-024",
    "positions of stores": "MR-024",
    "retention of inputs": "MR-025",
    "partitions of joins": "MR-002",
    "skew of partitions": "MR-063",
    "skew of keys": "MR-063",
    "next records": "MR-070",
    "members of others": "MR-030",
    "members": "MR-050",
    "unread partitions": "MR-050",
    "topology": "MR-033",
    "version": "MR-033",
    "stores on disk": "MR-033",
    "idle time": "MR-022",
    "identities": "MR-010",
    "zombies": "MR-010",
    "fencing": "MR-010",
    "state directory": "MR-023",
    "offsets": "MR-022",
    "health": "MR-063",
    "processing time": "MR-063",
    "quotas": "MR-063",
    "commits": "MR-063",
    "dropped records": "MR-052",
    "placement of keys": "MR-052",
    "recoveries": "MR-021",
    "queries": "MR-080",
    "transactions": "MR-016",
    "isolation of readers": "MR-053",
}
"""The symptom of most faults of a point; what its message is of goes over it."""


def add_symptom_code(finding: DoctorFinding) -> DoctorFinding:
    """Return a warning or an error with the code of its symptom, and others as they are.

    A code that the finding has already stays.
    """
    if finding.code or finding.verdict not in (Verdict.WARNING, Verdict.ERROR):
        return finding
    by_message = find_by_message(finding.what)
    if finding.point == CONNECTION:  # an error's text, whose class is not at hand
        by_message = find_by_text(finding.what)
    found = CODES.get(finding.point, "") if by_message is None else by_message.code
    return replace(finding, code=found)
