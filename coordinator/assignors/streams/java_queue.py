"""Take elements by priority as a PriorityQueue of Java does, which of equal ones comes first too.

Python's `heapq` keeps the same invariant, and breaks ties otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

E = TypeVar("E")


class JavaPriorityQueue(Generic[E]):
    """Holds elements in a binary heap, each with the priority that it had when it was added."""

    def __init__(self, elements: Iterable[E], get_priority: Callable[[E], float]) -> None:
        self._get_priority = get_priority
        self._elements: list[E] = []
        self._priorities: list[float] = []  # of the elements in the same places
        for element in elements:
            self.add_element(element)

    def __bool__(self) -> bool:
        return bool(self._elements)

    def add_element(self, element: E) -> None:
        """Add an element below all parents that are not larger."""
        elements, priorities = self._elements, self._priorities
        position, priority = len(elements), self._get_priority(element)
        elements.append(element)
        priorities.append(priority)
        while position:
            parent = (position - 1) // 2
            if priority >= priorities[parent]:
                break
            elements[position], priorities[position] = elements[parent], priorities[parent]
            position = parent
        elements[position], priorities[position] = element, priority

    def pop_least(self) -> E:
        """Remove and return the element of least priority."""
        least, last, priority = self._elements[0], self._elements.pop(), self._priorities.pop()
        if self._elements:
            self._sift_down(last, priority)
        return least

    def _sift_down(self, element: E, priority: float) -> None:
        """Put an element at the root, and move it below all children that are smaller."""
        elements, priorities = self._elements, self._priorities
        count, position, child = len(elements), 0, 1
        while child < count:
            right = child + 1
            if right < count and priorities[child] > priorities[right]:
                child = right
            if priority <= priorities[child]:
                break
            elements[position], priorities[position] = elements[child], priorities[child]
            position, child = child, 2 * child + 1
        elements[position], priorities[position] = element, priority
