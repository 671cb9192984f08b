"""Take elements by priority as a PriorityQueue of Java does, which of equal ones comes first too.

Python's `heapq` keeps the same invariant, and breaks ties otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

E = TypeVar("E")


class JavaPriorityQueue(Generic[E]):
    """Holds elements in a binary heap; `get_priority` may change while an element is outside."""

    def __init__(self, elements: Iterable[E], get_priority: Callable[[E], float]) -> None:
        self._get_priority = get_priority
        self._heap: list[E] = []
        for element in elements:
            self.add_element(element)

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add_element(self, element: E) -> None:
        """Add an element below all parents that are not larger."""
        heap, position = self._heap, len(self._heap)
        heap.append(element)
        priority = self._get_priority(element)
        while position:
            parent = (position - 1) // 2
            if priority >= self._get_priority(heap[parent]):
                break
            heap[position] = heap[parent]
            position = parent
        heap[position] = element

    def take_least(self) -> E:
        """Remove and return the element of least priority."""
        heap = self._heap
        least, last = heap[0], heap.pop()
        if heap:
            self._sift_down(last)
        return least

    def _sift_down(self, element: E) -> None:
        """Put an element at the root, and move it below all children that are smaller."""
        heap, position, priority = self._heap, 0, self._get_priority(element)
        while (child := 2 * position + 1) < len(heap):
            right = child + 1
            if right < len(heap) and self._get_priority(heap[child]) > self._get_priority(
                heap[right]
            ):
                child = right
            if priority <= self._get_priority(heap[child]):
                break
            heap[position] = heap[child]
            position = child
        heap[position] = element
