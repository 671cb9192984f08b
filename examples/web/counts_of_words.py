"""Read the counts of words from the stores of all workers, for whatever serves them.

Nothing here knows HTTP: `examples.web.api` calls it from its routes, and tests without a server.
"""

from dataclasses import dataclass
from itertools import islice, takewhile

from millrace import RoutedStore


@dataclass(frozen=True)
class CountOfWord:
    """Holds how often a word has occurred."""

    word: str
    count: int


@dataclass(frozen=True)
class AgedCountOfWord(CountOfWord):
    """Holds a count that may be as old as `age_s` seconds, and not older."""

    age_s: float


def read_count(counts: RoutedStore[str, int], word: str) -> AgedCountOfWord:
    """Return how often a word has occurred; 0 is certain, as a missing answer is an error."""
    found = counts.get_result(word)
    return AgedCountOfWord(word, found.value or 0, round(found.age_s, 3))


def list_counts(counts: RoutedStore[str, int], prefix: str, limit: int) -> list[CountOfWord]:
    """Return the first words with a prefix, in the order of their bytes in UTF-8."""
    from_prefix = counts.range(prefix)  # fetched as it is taken, so there is no need of an end
    found = takewhile(lambda row: row[0].startswith(prefix), from_prefix)
    return [CountOfWord(word, count) for word, count in islice(found, limit)]
