"""Hand the steps of the DSL to the application's processor wrapper, when the topology is built.

Processors of the user's were handed to it when they were described. Kafka Streams' KIP-1112.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from streams.dsl.builder import InternalStreamsBuilder
from streams.dsl.processor_stores import connect_processor_stores
from streams.graph.nodes import Graph, Node, ProcessorNode
from streams.graph.step_traits import UNKNOWN_STEP
from streams.operators.wrapped_step import (
    DslStepProcessor,
    WrappedStepShape,
    run_step_as_processor,
)
from streams.topology.expand import rewrite_graph


def wrap_steps(builder: InternalStreamsBuilder, graph: Graph) -> Graph:
    """Return the graph with each step of the DSL in a processor of the application's wrapper.

    `graph` has all steps that run. The stores that the wrapper's processors bring are added to it.
    Raises TopologyError naming the step.
    """
    wrapped = rewrite_graph(graph, partial(_wrap_node, builder))
    names = [name for _, stores in builder.wrapped_steps.values() for name in stores]
    declared = builder.graph.stores
    added = {name: declared[name] for name in names if name in declared}
    return replace(wrapped, stores=added | wrapped.stores)


def _wrap_node(builder: InternalStreamsBuilder, node: Node) -> list[Node]:
    """Return a node's step in the processor that the wrapper makes, if it is handed the step."""
    if not isinstance(node, ProcessorNode) or node.traits.is_never_wrapped:
        return [node]
    found = builder.wrapped_steps.get(node.name)
    if found is None:  # the wrapper is called once, however often the topology is built
        supplier = builder.wrap_processor(node.name, DslStepProcessor)
        found = connect_processor_stores(builder, node.name, supplier, ())
        builder.wrapped_steps[node.name] = found
    create_processor, added_stores = found
    before = node.parents[0] if node.parents else None
    shape = WrappedStepShape(
        takes_updates=isinstance(before, ProcessorNode) and before.emits_updates,
        emits_updates=node.emits_updates,
        keeps_keys=node.traits.keeps_keys,
        stores=(*node.stores, *added_stores),
    )
    return [
        replace(
            node,
            operator=run_step_as_processor(node.operator, create_processor, shape),
            stores=tuple(dict.fromkeys(shape.stores)),
            # Stores for the wrapper alone don't need the records of a key to meet.
            co_partitioned=node.co_partitioned and bool(node.stores),
            # A wrapper may change, add and drop records, and keep them.
            traits=replace(
                UNKNOWN_STEP,
                runs_processor=True,
                reads_table_topic=node.traits.reads_table_topic,
                names_children=node.traits.names_children,
                looks_up_global_store=node.traits.looks_up_global_store,
            ),
            rule=None,
            wrapped_rule=node.rule,
        )
    ]
