"""List parts of messages whose code is that of the error's class.

Where an error is at hand its class gives the code (`lookup.find_symptom`). Where only its text is
there, in a log without codes or in the words of `millrace explain-error`, these parts tell it. A
test finds those that are missing.
"""

from __future__ import annotations

CLASS_MESSAGES = {
    "MR-043": (
        " refused client ",
        " doesn't take sasl.mechanism ",
        " takes no SASL on this port ",
    ),
    "MR-040": (
        "can't join group ",
        " can't be checked: ",
        "the rights to topics can't be looked at: ",
        "the ledger can't be made: ",
        " have stood still for ",
        "no answer for ",
        "no commit for ",
        " has got no producer for ",
    ),
    "MR-033": ("the group's leader has assigned topic ",),
    "MR-021": (
        " has left generation ",
        "the coordinator does not know this member any more",
        "the group has moved on: offsets were refused",
        " has been read beyond ",
        "the thread is no member of its group: nothing can be committed",
    ),
    "MR-022": (
        ": records between two steps of this application are lost. Was the topic deleted, ",
        ", and offset_out_of_range=fail: ",
        ", though records that were made of the input's went through ",
        ", is an old copy: it holds what was written up to commit ",
    ),
    "MR-023": (" is in use by process ",),
    "MR-070": (
        " of an entry (",
        "; give another serde",
        "; the serde of its keys is ",
        " can't be read with serdes key=",
    ),
    "MR-081": ("not closed after ",),
    "MR-013": (
        "brokers refuse its credentials, which have been replaced since",
        ": the brokers don't list it yet",
        ": a partition has no leader yet",
        "list topics: the broker that answers lists no brokers: it is not ready",
        "list groups: ",
        ": no answer",
        "written where can't be told: ",
        "the producer's queue stayed full for ",
        ", past its time-out",
        "no broker has answered for ",
        ": no broker has them",
        "read the committed offsets: ",
        "changelog not delivered: ",
        "commit offsets: ",
        "the identity of ",
        "its task is gone",
        "ask the group for our membership: ",
        " tracks what it delivers",
    ),
    "MR-080": (
        " does not answer: ",
        " has sent no rows: ",
        "this worker is busy with ",
        "the group's coordinator has not answered this worker for ",
        " has not taken in ",
        "this worker is being stopped: ask another one",
        " of these: ask for fewer keys, or a shorter time",
        ": it runs on, and its result is lost",
        "this worker runs ",
        "this worker can't start a thread for the function of query ",
        " can't be read now: ",
        "how many partitions a store has can't be told: ",
    ),
}
"""Parts by codes; the first code with a part of a message is the message's."""
