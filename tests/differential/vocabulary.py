"""Define the functions that a description may name, as `Vocabulary.java` does.

A function is its name and, behind a colon, one parameter: `append:x`. Values are strings, integers
or None.
"""

from __future__ import annotations

from typing import Any


def text(value: Any) -> str:
    return "null" if value is None else str(value)


def number(value: Any) -> int:
    """Return an integer itself, a string's length, 0 for None."""
    if value is None:
        return 0
    return value if isinstance(value, int) else len(text(value))


def _split(function: str) -> tuple[str, str]:
    name, _, parameter = function.partition(":")
    return name, parameter


def _unknown(function: str) -> ValueError:
    return ValueError(f"no such function: {function}")


def test(function: str, key: Any, value: Any) -> bool:
    name, parameter = _split(function)
    match name:
        case "all":
            return True
        case "none":
            return False
        case "even":
            return value is not None and number(value) % 2 == 0
        case "longer":
            return value is not None and number(value) > int(parameter)
        case "key_is":
            return text(key) == parameter
        case "has_value":
            return value is not None
        case "has_key":
            return key is not None
    raise _unknown(function)


test.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for one


def value(function: str, given: Any) -> Any:
    name, parameter = _split(function)
    if name == "or_null":
        return text(given)
    if given is None:
        return None
    match name:
        case "append":
            return given + parameter
        case "upper":
            return given.upper()
        case "length":
            return number(given)
        case "add":
            return given + int(parameter)
        case "text":
            return text(given)
        case "same":
            return given
        case "null_over":
            return None if number(given) > int(parameter) else given
    raise _unknown(function)


def key(function: str, given: Any, of: Any) -> str | None:
    """Return a new key for the record of key `given` and value `of`."""
    name, parameter = _split(function)
    match name:
        case "key":
            return None if given is None else text(given)
        case "value":
            return None if of is None else text(of)
        case "first_letter":
            return None if of is None or not text(of) else text(of)[:1]
        case "bucket":
            return None if of is None else f"b{number(of) % int(parameter)}"
        case "constant":
            return parameter
    raise _unknown(function)


def pair(function: str, given: Any, of: Any) -> tuple[Any, Any]:
    name, parameter = _split(function)
    match name:
        case "swap":
            return key("value", given, of), key("key", given, of)
        case "by":
            return key(parameter, given, of), of
    raise _unknown(function)


def pairs(function: str, given: Any, of: Any) -> list[tuple[Any, Any]]:
    match function:
        case "words":
            return [(word, word) for word in _words(of)]
        case "twice":
            return [(given, of), (given, of)]
        case "both_keys":
            return [(given, of), (key("first_letter", given, of), of)]
    raise _unknown(function)


def values(function: str, given: Any) -> list[Any]:
    match function:
        case "words":
            return list(_words(given))
        case "twice":
            return [given, given]
    raise _unknown(function)


def _words(given: Any) -> list[str]:
    return [] if given is None else [word for word in text(given).split(" ") if word]


def join(function: str, left: Any, right: Any) -> Any:
    name, parameter = _split(function)
    match name:
        case "concat":
            return f"{text(left)}+{text(right)}"
        case "sum":
            return number(left) + number(right)
        case "null_over":
            big = number(left) + number(right) > int(parameter)
            return None if big else f"{text(left)}+{text(right)}"
    raise _unknown(function)


def reduce(function: str, old: Any, new: Any) -> Any:
    name, parameter = _split(function)
    match name:
        case "concat":
            return text(old) + text(new)
        case "minus":
            return f"{text(old)}-{text(new)}"
        case "sum":
            return number(old) + number(new)
        case "difference":
            return number(old) - number(new)
        case "latest":
            return new
        case "max":
            return new if number(new) > number(old) else old
        case "concat_under":
            return None if len(text(old)) > int(parameter) else text(old) + text(new)
    raise _unknown(function)


def initial(function: str) -> Any:
    match _split(function)[0]:
        case "concat" | "concat_under" | "minus":
            return ""
        case "sum" | "difference" | "max":
            return 0
    raise _unknown(function)


def aggregate(function: str, given: Any, of: Any, so_far: Any) -> Any:
    name, parameter = _split(function)
    match name:
        case "concat":
            return f"{text(so_far)},{text(of)}"
        case "minus":
            return f"{text(so_far)}-{text(of)}"
        case "concat_under":
            over = len(text(so_far)) > int(parameter)
            return None if over else f"{text(so_far)},{text(of)}"
        case "sum":
            return number(so_far) + number(of)
        case "difference":
            return number(so_far) - number(of)
        case "max":
            return max(number(so_far), number(of))
    raise _unknown(function)


def merge(function: str, one: Any, other: Any) -> Any:
    """Merge the aggregates of two sessions that become one."""
    match _split(function)[0]:
        case "concat" | "concat_under":
            return f"{text(one)}|{text(other)}"
        case "sum":
            return number(one) + number(other)
        case "max":
            return max(number(one), number(other))
    raise _unknown(function)


def time(function: str, of: Any, time_ms: int, partition_time_ms: int) -> int:
    """Return the time that an extractor finds for a record of value `of`; -1: it has none."""
    name, parameter = _split(function)
    match name:
        case "shift":
            return time_ms + int(parameter)
        case "early_invalid":
            return -1 if time_ms < int(parameter) else time_ms
        case "odd_invalid":
            return -1 if number(of) % 2 else time_ms
        case "late_invalid":
            return -1 if time_ms < partition_time_ms else time_ms
    raise _unknown(function)


def partitions(function: str, of: Any) -> list[int] | None:
    """Return the partitions, of one, to which a record of value `of` goes; None: by its key."""
    match function:
        case "by_key":
            return None
        case "only":
            return [0]
        case "odd_dropped":
            return [] if number(of) % 2 else [0]
    raise _unknown(function)


def topic(function: str, of: Any) -> str:
    """Return the topic to which a record of this value goes."""
    return _split(function)[1] + ("-even" if number(of) % 2 == 0 else "-odd")
