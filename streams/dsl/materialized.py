"""How a store is kept: `store="name"`, or one of `Store`'s constructors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streams.serdes import Serde
from streams.topology.nodes import StoreSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """A store's name and how it is kept."""

    name: str
    is_persistent: bool
    caching: bool

    @classmethod
    def persistent(cls, name: str, *, caching: bool = True) -> Store:
        """On RocksDB. With `caching` a key's result goes downstream once a commit."""
        return cls(name=name, is_persistent=True, caching=caching)

    @classmethod
    def in_memory(cls, name: str, *, caching: bool = True) -> Store:
        """In memory: rebuilt from its changelog at each start."""
        return cls(name=name, is_persistent=False, caching=caching)

    def spec(self, key: Serde[Any], value: Serde[Any]) -> StoreSpec:
        return StoreSpec(
            name=self.name,
            key=key,
            value=value,
            persistent=self.is_persistent,
            caching=self.caching,
        )
