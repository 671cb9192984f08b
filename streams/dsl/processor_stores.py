"""Add the step of a user's processor: check its supplier, and declare the stores that it uses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from streams.dsl.builder import InternalStreamsBuilder
from streams.dsl.function_checks import check_callable
from streams.errors import TopologyError
from streams.graph.materialized import Store
from streams.graph.nodes import Node, Operator, ProcessorNode
from streams.graph.step_traits import StepTraits
from streams.operators.process import ProcessorFactory
from streams.processor.processor import Processor


def add_processor_step(
    builder: InternalStreamsBuilder,
    kind: str,
    step: str,
    parents: tuple[Node, ...],
    create_operator: Callable[[ProcessorFactory, Collection[str]], Operator],
    factory: ProcessorFactory,
    stores: Sequence[str | Store],
    *,
    co_partitioned: bool,
) -> ProcessorNode:
    """Add a step that runs a user's processor, with its stores, and return it.

    Raises TopologyError naming the step.
    """
    create_processor = builder.wrap_processor(step, factory)
    # One list for the node and for the processor's context: stores may be connected later.
    used = list(connect_processor_stores(builder, step, create_processor, stores))
    node = ProcessorNode(
        name=step,
        parents=parents,
        operator=create_operator(create_processor, used),
        kind=kind,
        stores=used,
        traits=StepTraits(runs_processor=True),
        co_partitioned=co_partitioned,
    )
    builder.graph.add_node(node)
    return node


def connect_processor_stores(
    builder: InternalStreamsBuilder,
    step: str,
    factory: Callable[[], Any],
    more_stores: Sequence[str | Store],
    *,
    kind: type[Any] = Processor,
) -> tuple[str, ...]:
    """Check the processor supplier of a step and return the names of its stores, each once.

    Stores that come as a Store are declared. `kind` is the class of what `factory` must make.
    Raises TopologyError naming the step.
    """
    stores = [*list_supplier_stores(step, factory, kind=kind), *_check_stores(step, more_stores)]
    return tuple(
        dict.fromkeys(
            each if isinstance(each, str) else builder.declare_shared_store(each, step)
            for each in stores
        )
    )


def list_supplier_stores(
    step: str, factory: Callable[[], Any], *, kind: type[Any] = Processor
) -> Sequence[str | Store]:
    """Check the processor supplier of a step and return the stores that its processors name.

    Calls `factory` twice: each task needs a processor of its own (Kafka Streams checks that too).
    Raises TopologyError naming the step.
    """
    wanted = kind.__name__
    if isinstance(factory, kind):
        raise TopologyError(
            f"step {step!r} needs a {wanted}'s class, or a function that makes one, and got "
            f"{factory!r}: each task needs one of its own"
        )
    check_callable(step, factory)
    try:
        one, other = factory(), factory()
    except Exception as error:
        raise TopologyError(
            f"step {step!r} can't make a {wanted}: {factory!r} raised {error!r}"
        ) from error
    if not isinstance(one, kind):
        raise TopologyError(f"step {step!r} needs a {wanted}, and {factory!r} made {one!r}")
    if one is other:
        raise TopologyError(
            f"step {step!r}: {factory!r} returned the same {wanted} twice; each task needs one of "
            "its own"
        )
    return _check_stores(step, one.stores)


def _check_stores(step: str, stores: Sequence[str | Store]) -> Sequence[str | Store]:
    """Return `stores`, or raise TopologyError if it is no list of stores and of names."""
    if isinstance(stores, str | Store):
        raise TopologyError(f"step {step!r}: stores is a list, as [{stores!r}]")
    listed = list(stores)
    for store in listed:
        if not isinstance(store, str | Store):
            raise TopologyError(f"step {step!r}: {store!r} is neither a store nor a store's name")
    return listed
