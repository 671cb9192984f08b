"""List the symptoms of stores, changelogs, committed offsets and state directories."""

from __future__ import annotations

from streams.symptoms.symptom import Symptom

STATE_SYMPTOMS = (
    Symptom(
        code="MR-023",
        meaning="A state directory is used by another process or of another application.",
        page="state-directory.md",
        messages=(
            "it is no state directory; choose another",
            "choose another state_dir",
            " was removed, or replaced, under this worker",
            "as files of theirs were removed under this process",
        ),
        classes=("DirectoryLocked",),
    ),
    Symptom(
        code="MR-020",
        meaning="A store is damaged or may be wrong, and is rebuilt from its changelog.",
        page="task-corrupted.md",
        messages=(" is rebuilt from its changelog: ", " is damaged: ", " is copied anew: "),
        classes=("TaskCorrupted", "StoreCorrupted"),
    ),
    Symptom(
        code="MR-024",
        meaning="A changelog was deleted, made again or has lost records that a store needs.",
        page="changelog-lost.md",
        messages=(
            " since offsets were committed, when it stood at ",
            ", and offsets were committed when it stood at ",
            *("was kept in, and offsets are committed, ", "or accept the loss once with "),
            "It goes on without them (changelog_out_of_range)",
            ", and nothing is committed without it. Don't create it by hand: ",
        ),
    ),
    Symptom(
        code="MR-025",
        meaning="A topic that is needed was deleted, cut, or made again.",
        page="topics-lost.md",
        messages=(
            *(" does not exist on ", " do not exist on "),
            " is not on the brokers any more: it was deleted",
            *(" is not on the brokers: it was deleted", " can't be read: it was deleted"),
            " do not exist any more: create them again",
            *("another topic of the same name", "was deleted and created again"),
            " and the topology needs ",
        ),
    ),
    Symptom(
        code="MR-026",
        meaning="The file that numbers the directories of tasks can't be read.",
        page="state-directory.md",
        messages=("): delete this one file, and directories are ",),
    ),
    Symptom(
        code="MR-022",
        meaning="Committed offsets do not account for the state that is there.",
        page="offsets-refused.md",
        classes=("PositionRefused",),
    ),
    Symptom(
        code="MR-060",
        meaning="A restore stands still, or takes very long.",
        page="restore-slow.md",
        messages=("a restore has stood still for ", "standby tasks wait: "),
    ),
)
