"""Define App, which describes an application's topology and settings, and starts it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, overload

from streams.common.call_hints import explain_calls
from streams.common.names import check_application_id, check_step_name
from streams.common.user_code import describe_import_error
from streams.common.user_module import import_user_module, refuse_run_during_import
from streams.dsl.builder import InternalStreamsBuilder
from streams.dsl.global_table import GlobalTable, create_global_table
from streams.dsl.kafka_streams_names import compose_missing_method_hint
from streams.dsl.query_registration import QueryRegistration
from streams.dsl.source_serdes import require_source_serdes, resolve_source_serdes
from streams.dsl.source_streams import SourceStreams
from streams.dsl.sources import SourceOptions, add_source_node
from streams.dsl.step_wrapping import wrap_steps
from streams.dsl.stream import Stream
from streams.dsl.table import Table, create_table
from streams.dsl.topology_builder import TopologyBuilder
from streams.errors import ConfigError, TopologyError, UserError
from streams.graph.materialized import Store
from streams.graph.nodes import Graph
from streams.graph.step_traits import StepTraits
from streams.processes.error_exit import exit_with_error
from streams.processes.foreground import run_application
from streams.processes.launch import ApplicationLaunch, start_worker_threads
from streams.processes.lifecycle import StateListener
from streams.processes.logging_setup import configure_logging
from streams.processes.own_broker import OwnBroker
from streams.processes.running import RunningApp
from streams.processes.termination import OPEN_APPLICATIONS
from streams.runtime.restoring.progress import RestoreListener
from streams.serdes import Serde
from streams.serdes.registry_client import ApplicationRegistry
from streams.settings.client_settings import rename_to_dotted_names
from streams.settings.config import StreamsConfig, load_config
from streams.settings.exception_handlers import check_dead_letter_topics
from streams.settings.keywords import StreamsSettings
from streams.settings.optimizations import parse_optimizations
from streams.settings.properties_file import check_application_id_of_file
from streams.settings.timestamp_extractors import TimestampExtractor, TimestampPolicyName
from streams.topics import TopicPattern
from streams.topology.build import Topology, build_topology
from streams.topology.explicit_names import check_explicit_names, check_internal_names
from streams.topology.render import render_topology

K = TypeVar("K")
V = TypeVar("V")


@explain_calls
class App(QueryRegistration):
    """Represents one application: its topology and its settings.

    `application_id` names the group, the internal topics and the directory of the state. Settings
    come from defaults, environment variables, `config` and `overrides`, in rising order, and then
    from the command line by `configure` (see `StreamsConfig`). Raises ConfigError for a bad id or
    setting.

    >>> app = App("shop")
    """

    def __init__(
        self,
        application_id: str,
        *,
        config: StreamsConfig | None = None,
        **overrides: Unpack[StreamsSettings],
    ) -> None:
        super().__init__()
        self.application_id = check_application_id(application_id)
        of_config = (
            {name: getattr(config, name) for name in config.model_fields_set} if config else {}
        )
        self._given_settings = rename_to_dotted_names({**of_config, **overrides})
        self.config = load_config(**self._given_settings)
        self.schema_registry = ApplicationRegistry(lambda: self.config.schema_registry)
        """The registry of the setting `schema_registry`, for `registry=` of serdes."""
        self._builder = InternalStreamsBuilder(
            application_id,
            Graph(internal_names=self.config.internal_names),
            self.config.processor_wrapper,
        )
        self._source_streams = SourceStreams(self._builder)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError that says what to call instead of `name`."""
            if name.startswith("_") or name == "application_id":  # as a copy is made
                raise AttributeError(name)
            hint = compose_missing_method_hint(type(self), name)
            raise AttributeError(f"App {self.application_id!r} has no {name!r}{hint}")

    def configure(self, file: str | Path | None, **flags: Any) -> None:
        """Apply the command line's settings: `flags` above those given before, and `file` below."""
        file = None if file is None else Path(file)
        check_application_id_of_file(file, self.application_id)
        self.config = load_config(file, flags, **self._given_settings)

    @overload
    def stream(
        self,
        topic: str,
        *,
        key: Serde[K],
        value: Serde[V],
        name: str | None = None,
        timestamp_extractor: TimestampExtractor | TimestampPolicyName | None = None,
        offset_reset: str | timedelta | None = None,
    ) -> Stream[K, V]: ...

    @overload
    def stream(
        self,
        topic: Sequence[str | TopicPattern] | TopicPattern,
        *,
        key: Serde[K],
        value: Serde[V],
        name: str | None = None,
        co_partitioned: bool = True,
        timestamp_extractor: TimestampExtractor | TimestampPolicyName | None = None,
        offset_reset: str | timedelta | None = None,
    ) -> Stream[K, V]: ...

    # The overloads require both serdes; without a type checker the call says which step needs one.
    def stream(
        self,
        topic: str | Sequence[str | TopicPattern] | TopicPattern,
        *,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
        name: str | None = None,
        co_partitioned: bool = True,
        timestamp_extractor: TimestampExtractor | TimestampPolicyName | None = None,
        offset_reset: str | timedelta | None = None,
    ) -> Stream[Any, Any]:
        """Return the stream of records of one topic, or of several merged.

        The topics must exist when the application starts. Those of a pattern, `topics.matching`,
        may come and go while it runs, and are noticed within `metadata_max_age_ms`. A second call
        for the same topic returns the same stream, with the name of the first call.
        `co_partitioned` is as in `Stream.merge`.
        `timestamp_extractor` says the time of each record (`default_timestamp_extractor`), and
        `offset_reset` where to begin without a committed offset (`auto_offset_reset`): text as
        there, or a duration.

        >>> orders = app.stream(["orders", "returns"], key=serdes.string, value=serdes.json)
        >>> app.topology().input_topics
        ('orders', 'returns')
        """
        options = SourceOptions(timestamp_extractor=timestamp_extractor, offset_reset=offset_reset)
        if isinstance(topic, TopicPattern):
            options = replace(options, co_partitioned=co_partitioned)
            return self._source_streams.read_topic(topic, key, value, name, options)
        if not isinstance(topic, list | tuple):
            return self._source_streams.read_topic(topic, key, value, name, options)
        if not topic:
            raise TopologyError("stream() needs a topic, or a list of at least one")
        first, *others = (
            self._source_streams.read_topic(
                *(each, key, value),
                None if name is None else f"{name}-{each if isinstance(each, str) else number}",
                options,
            )
            for number, each in enumerate(topic)
            if each not in topic[:number]
        )
        if not others:
            return first
        return first.merge(*others, name=name, co_partitioned=co_partitioned)

    def table(
        self,
        topic: str,
        *,
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        store: str | Store | None = None,
        name: str | None = None,
        timestamp_extractor: TimestampExtractor | TimestampPolicyName | None = None,
        offset_reset: str | timedelta | None = None,
    ) -> Table[K, V]:
        """Return a table of the latest value of each key of a topic.

        The topic must exist when the application starts. A record without a value deletes its key;
        one without a key is dropped. The serdes may be given on the store instead.
        `timestamp_extractor` and `offset_reset` are as in `stream`.

        >>> prices = app.table("prices", key=serdes.string, value=serdes.int64, store="prices")
        """
        key, value = resolve_source_serdes(store, key, value)
        source = None if name is None else f"{check_step_name(name)}-source"
        graph = self._builder.graph
        step = graph.choose_step_name("KSTREAM-SOURCE", source)
        options = SourceOptions(timestamp_extractor=timestamp_extractor, offset_reset=offset_reset)
        node = add_source_node(graph, step, topic, key, value, options)
        traits = StepTraits(takes_latest=True, reads_table_topic=True)
        return create_table(
            self._builder, "KTABLE-SOURCE", node, node.key, node.value, store, name, traits
        )

    def global_table(
        self,
        topic: str,
        *,
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        store: str | Store | None = None,
        name: str | None = None,
    ) -> GlobalTable[K, V]:
        """Return a table of a whole topic that every worker replicates, for look-ups by any key.

        What a record finds in it depends on when the record is processed. The serdes may be given
        on the store instead. Kafka Streams' GlobalKTable.

        >>> rates = app.global_table("rates", key=serdes.string, value=serdes.float64)
        """
        key, value = resolve_source_serdes(store, key, value)
        step = self._builder.graph.choose_step_name("KSTREAM-GLOBALTABLE", name)
        key, value = require_source_serdes(step, topic, key, value)
        return create_global_table(self._builder, topic, key, value, store, name)

    def add_store(self, store: Store) -> None:
        """Add a state store that processors name in `stores`.

        The store needs both of its serdes. Raises TopologyError.

        >>> app.add_store(Store.persistent("seen", key=serdes.string, value=serdes.int64))
        """
        if not isinstance(store, Store):
            raise TopologyError(f"add_store takes a Store, got {store!r}")
        self._builder.declare_shared_store(store, "add_store")

    def topology_builder(self) -> TopologyBuilder:
        """Return the builder that adds sources, processors, sinks and stores by name.

        It adds to the same topology as `stream` and `table`. Kafka Streams' Topology.

        >>> builder = app.topology_builder()
        >>> builder.add_source("lines", "lines", key=serdes.string, value=serdes.string)
        <TopologyBuilder of 'shop'>
        """
        return TopologyBuilder(self._builder)

    def topology(self) -> Topology:
        """Build and return the finished topology.

        Raises TopologyError naming the step that is wrong; ConfigError for dead letters that would
        go to a topic that it reads.

        >>> app.stream("orders", key=serdes.string, value=serdes.int64).to("copy")
        >>> app.topology().input_topics
        ('orders',)
        """
        optimizations = parse_optimizations(self.config.topology_optimization)
        graph, config = self._builder.graph, self.config
        topology = build_topology(
            self.application_id,
            graph,
            optimizations,
            config.default_timestamp_extractor,
            default_store=config.default_store,
            wrap_steps=partial(wrap_steps, self._builder) if config.processor_wrapper else None,
        )
        check_internal_names(config.internal_names, graph)
        if config.ensure_explicit_internal_resource_naming:
            check_explicit_names(topology, graph.generated_names)
        check_dead_letter_topics(self.config.handlers, topology.reads_topic)
        return self._add_queries(topology)

    def describe(
        self,
        format: Literal["text", "mermaid", "dot", "json"] = "text",  # noqa: A002  the public name
    ) -> str:
        """Return the topology (sub-topologies, steps, stores, topics) as text, JSON or a drawing.

        "mermaid" and "dot" are the source of a drawing for Mermaid or Graphviz.

        >>> app.stream("orders", key=serdes.string, value=serdes.int64).to("copy")
        >>> print(app.describe().splitlines()[2])
            Source: KSTREAM-SOURCE-0000000000 (topics: [orders])
        """
        return render_topology(self.topology(), format)

    def start(
        self,
        *,
        restore_listener: RestoreListener | None = None,
        state_listener: StateListener | None = None,
        handle_signals: bool = True,
        wait_for_broker: bool = True,
    ) -> RunningApp:
        """Start the application in the background and return its handle.

        `restore_listener` is told the progress of restores, `state_listener` each new state and the
        one before. `handle_signals`: see
        `streams.processes.termination`. `wait_for_broker`: waits as long as no broker answers where
        the application has run before. A start that fails stops the embedded broker that it has
        started. Raises BrokerUnavailable; ConfigError for a command.
        """
        refuse_run_during_import()
        self.schema_registry.check_settings()
        is_given_up = (lambda: False) if wait_for_broker else None
        with OwnBroker(self.config, self.application_id) as broker:
            launch = self._create_launch(restore_listener, state_listener)
            running = start_worker_threads(launch, is_given_up=is_given_up)
            broker.note_broker_use()
        return OPEN_APPLICATIONS.add_application(running) if handle_signals else running

    def run(
        self,
        workers: int = 1,
        *,
        restore_listener: RestoreListener | None = None,
        state_listener: StateListener | None = None,
    ) -> None:
        """Run the application until SIGTERM or SIGINT, then commit and leave the group.

        Several `workers` are processes of their own; one that a signal ends is started again. The
        listeners are those of `start`, and are called in each of these processes. Ends
        the process with status 2 and one line on standard error for an error that the user can
        correct; with 75 if brokers don't answer in time, which may pass; with 1 if it could not
        commit and leave within shutdown_timeout_ms; at once at a second signal. Raises ConfigError
        while a command imports the module.
        """
        refuse_run_during_import()  # outside of try, which ends the process: a command reports it
        try:
            configure_logging(self.config.log_level, self.config.log_format)
            if not isinstance(workers, int) or workers < 1:
                raise ConfigError(f"workers must be a number, at least 1, not {workers!r}")
            self.schema_registry.check_settings()
            # An error in the topology is reported once, before anything starts.
            run_application(self._create_launch(restore_listener, state_listener), workers)
        except UserError as error:
            exit_with_error(error)

    def _create_launch(
        self, restore_listener: RestoreListener | None, state_listener: StateListener | None
    ) -> ApplicationLaunch:
        """Build the topology and bundle it with the settings. Raises TopologyError, ConfigError."""
        return ApplicationLaunch(
            app=self,
            topology=self.topology(),
            config=self.config,
            given_settings=self._given_settings,
            restore_listener=restore_listener,
            state_listener=state_listener,
        )


def import_app(reference: str) -> App:
    """Import the App that `module:variable` names.

    Raises ConfigError saying which part is wrong, with the line of the module that failed.
    """
    module_name, _, variable = reference.partition(":")
    if not module_name or not variable or "/" in module_name or module_name.endswith(".py"):
        raise ConfigError(f"{reference!r} is not module:variable{_suggest_reference(reference)}")
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = import_user_module(module_name)
    except UserError:  # it says what is wrong; report_error adds the line
        raise
    except Exception as error:
        why = describe_import_error(error, module_name)
        raise ConfigError(f"{why}; wanted for {reference!r}") from error
    found = getattr(module, variable, None)
    if isinstance(found, App):
        return found
    apps = [name for name, value in vars(module).items() if isinstance(value, App)]
    there_is = f"; it has the App {' and '.join(map(repr, apps))}" if apps else ""
    if found is None:
        raise ConfigError(f"module {module_name!r} has no {variable!r}{there_is}")
    kind = type(found).__name__
    raise ConfigError(
        f"{variable!r} in module {module_name!r} has the type {kind} and is no App{there_is}"
    )


def _suggest_reference(reference: str) -> str:
    """Return how to write a reference that names a file, or no variable, for a message."""
    path, _, variable = reference.partition(":")
    module_name = os.path.normpath(path).removesuffix(".py").replace("/", ".")
    if not all(part.isidentifier() for part in module_name.split(".")):
        return ", as in examples.word_count:app"
    return f": write {module_name}:{variable or 'app'}"
