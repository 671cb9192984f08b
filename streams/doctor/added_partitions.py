"""Say what follows where partitions were added to an input before a store, and the ways out.

A store of a task has the keys of one partition of each of its inputs. With other partition counts
the producers' partitioner sends keys elsewhere, away from their state.
"""

from __future__ import annotations

from streams.command_lines import format_command

ADDED_PARTITIONS = (
    "workers that run end when the group's leader notices it (metadata_max_age_ms), and a start is "
    "refused: keys would be looked for in other partitions than their state is in. Nothing is lost "
    "so far, and partitions can't be taken away again"
)


def advise_on_added_partitions(topic: str, former: int) -> str:
    """Return the ways out where an input before a store has more partitions, the gentlest first."""
    made = format_command("create-topics", f"{topic}-2", "--partitions", str(former))
    return (
        f"put .repartition(partitions={former}) before the steps with stores: their state stays, "
        "and all partitions are read. Or let producers write to a new topic with as many "
        f"({made}) that the application reads instead. Or run it by another id, with other "
        "outputs, until that has computed all from the inputs. Only where the state may go: "
        f"{format_command('group reset')}, after a look with --dry-run. "
        f"{format_command('plan')} shows what each does to the state"
    )
