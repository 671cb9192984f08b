"""Make topics of a pretended application, cuts of them, and exports in a killable process.

It runs as `python -m tests.spark.exports SERVERS APPLICATION DIRECTORY`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from streams.common.topic_partitions import Partition
from streams.spark import Cut
from streams.spark.cuts.cut import StoreCut
from streams.spark.source.broker_access import BrokerAccess

PARTITIONS = 2
STORE = "counts"


def changelog(application: str) -> str:
    return f"{application}-{STORE}-changelog"


def output(application: str) -> str:
    return f"{application}-out"


def cut_now(servers: str, application: str, *, told: bool = True) -> Cut:
    """Return a cut at what is stable now; `told`: whether it knows the ends of the output."""
    admin = BrokerAccess(servers).create_admin()
    stands = [Partition(changelog(application), n) for n in range(PARTITIONS)]
    ends = [Partition(output(application), n) for n in range(PARTITIONS)]
    return Cut(
        application_id=application,
        taken_ms=1,
        offsets={Partition(f"{application}-in", 0): 1},
        stores={
            STORE: StoreCut(
                changelog(application),
                {p.number: at for p, at in admin.fetch_last_stable_offsets(stands).items()},
            )
        },
        ends=admin.fetch_last_stable_offsets(ends) if told else None,
    )


def main(servers: str, application: str, directory: str) -> None:
    """Export in files of one offset each, which takes long enough to be killed."""
    from streams.spark.exporting.export import ExportRequest, export_application
    from streams.spark.session import session

    with session("local[1]") as spark:
        print("exporting", flush=True)
        wanted = ExportRequest(outputs=[output(application)])
        cut = cut_now(servers, application)
        export_application(
            spark, cut, BrokerAccess(servers), Path(directory), wanted, records_per_file=1
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
