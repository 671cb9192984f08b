"""Serialise any Python object by pickle, between programs that trust each other.

**Reading a pickle runs code that is in it.** Whoever can write to the topic can run code of theirs
in every process that reads it. Use this where nobody else writes: for stores and internal topics,
on a cluster that is yours alone; and `json` or a schema anywhere else. Two more warnings: equal
objects may have different pickles (a set of text has another in each process), so don't use it for
keys, nor for the left table of a foreign-key join, which identifies a row's value by the hash of
its bytes; and a pickle names its class by module, so a class that moved or changed its fields makes
old records and stores unreadable.
"""

from __future__ import annotations

import pickle as library
from functools import partial
from typing import Any

from streams.serdes.serde import Serde

_PROTOCOL = 5
"""The pickle protocol, which every Python since 3.8 knows, so that all workers write the same."""

pickle: Serde[Any] = Serde("pickle", partial(library.dumps, protocol=_PROTOCOL), library.loads)
