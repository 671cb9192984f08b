"""Add the step of a user's processor: check its supplier, and declare the stores that it uses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeAlias

from streams.dsl.builder import InternalStreamsBuilder
from streams.dsl.function_checks import check_callable
from streams.errors import TopologyError
from streams.graph.materialized import Store
from streams.graph.nodes import Node, Operator, ProcessorNode
from streams.graph.step_traits import StepTraits
from streams.operators.process import ProcessorFactory
from streams.processor.processor import Processor
from streams.processor.processor_supplier import (
    ProcessorSupplier,
    get_supplied_stores,
    is_supplier,
)

CreateProcessor: TypeAlias = Callable[[], Any]
StoreNames: TypeAlias = tuple[str, ...]


def add_processor_step(
    builder: InternalStreamsBuilder,
    kind: str,
    step: str,
    parents: tuple[Node, ...],
    create_operator: Callable[[ProcessorFactory, Collection[str]], Operator],
    supplier: ProcessorFactory | ProcessorSupplier,
    stores: Sequence[str | Store],
    *,
    co_partitioned: bool,
) -> ProcessorNode:
    """Add a step that runs a user's processor, with its stores, and return it.

    Raises TopologyError naming the step.
    """
    factory, supplied = _resolve_supplier(step, supplier, Processor)
    create_processor, names = connect_processor_stores(
        builder,
        step,
        builder.wrap_processor(step, factory),
        [*supplied, *_check_stores(step, stores)],
    )
    used = list(names)  # for the node and the processor's context: stores may be connected later
    node = ProcessorNode(
        name=step,
        parents=parents,
        operator=create_operator(create_processor, used),
        kind=kind,
        stores=used,
        traits=StepTraits(runs_processor=True, is_never_wrapped=True),
        co_partitioned=co_partitioned,
    )
    builder.graph.add_node(node)
    return node


def connect_processor_stores(
    builder: InternalStreamsBuilder,
    step: str,
    supplier: Any,
    more_stores: Sequence[str | Store],
    *,
    kind: type[Any] = Processor,
) -> tuple[CreateProcessor, StoreNames]:
    """Check the processor supplier of a step; return its function and the names of its stores.

    Stores that come as a Store are declared, and each is named once. `kind` is the class of what
    the function must make. Raises TopologyError naming the step.
    """
    factory, stores = list_supplier_stores(step, supplier, kind=kind)
    names = (
        each if isinstance(each, str) else builder.declare_shared_store(each, step)
        for each in (*stores, *_check_stores(step, more_stores))
    )
    return factory, tuple(dict.fromkeys(names))


def list_supplier_stores(
    step: str, supplier: Any, *, kind: type[Any] = Processor
) -> tuple[CreateProcessor, Sequence[str | Store]]:
    """Check the processor supplier of a step; return its function and the stores that it names.

    These are its own and those that its processors name. Calls the function twice: each task needs
    a processor of its own (Kafka Streams checks that too). Raises TopologyError naming the step.
    """
    wanted = kind.__name__
    factory, supplied = _resolve_supplier(step, supplier, kind)
    try:
        one, other = factory(), factory()
    except Exception as error:
        raise TopologyError(
            f"step {step!r} can't make a {wanted}: {factory!r} raised {error!r}"
        ) from error
    if not isinstance(one, kind):
        hint = f": give the supplier as {factory.__name__}()" if is_supplier(one) else ""
        raise TopologyError(f"step {step!r} needs a {wanted}, and {factory!r} made {one!r}{hint}")
    if one is other:
        raise TopologyError(
            f"step {step!r}: {factory!r} returned the same {wanted} twice; each task needs one of "
            "its own"
        )
    return factory, [*supplied, *_check_stores(step, one.stores)]


def _resolve_supplier(
    step: str, supplier: Any, kind: type[Any]
) -> tuple[CreateProcessor, Sequence[str | Store]]:
    """Return the function that makes the processors of a step, and the stores of its supplier."""
    if isinstance(supplier, kind):
        raise TopologyError(
            f"step {step!r} needs a {kind.__name__}'s class, or a function that makes one, and got "
            f"{supplier!r}: each task needs one of its own"
        )
    if is_supplier(supplier):
        return supplier.get, _check_stores(step, get_supplied_stores(supplier))
    check_callable(step, supplier)
    return supplier, ()


def _check_stores(step: str, stores: Sequence[str | Store]) -> Sequence[str | Store]:
    """Return `stores`, or raise TopologyError if it is no list of stores and of names."""
    if isinstance(stores, str | Store):
        raise TopologyError(f"step {step!r}: stores is a list, as [{stores!r}]")
    listed = list(stores)
    for store in listed:
        if not isinstance(store, str | Store):
            raise TopologyError(f"step {step!r}: {store!r} is neither a store nor a store's name")
    return listed
