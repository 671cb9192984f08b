"""Load and check the settings of an application from all the places that they come from.

In rising order: defaults, a file (`--config`), `MILLRACE_*` environment variables, keyword
arguments of `App`, command-line flags. Names are Kafka Streams' with underscores.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    field_serializer,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from streams.common.addresses import parse_addresses, strip_brackets
from streams.connection.files import flatten_tables
from streams.connection.registry_settings import SchemaRegistrySettings
from streams.connection.settings import ConnectionSettings, is_security_setting
from streams.errors import ConfigError
from streams.settings import choices
from streams.settings.assignment_settings import (
    AssignmentSettings,
    check_assignor_protocol,
    find_client_rack,
)
from streams.settings.client_options import (
    ClientOptions,
    check_compaction_lag,
    check_delivery_timeout,
)
from streams.settings.client_settings import (
    LIBRDKAFKA_SETTINGS,
    RESERVED_CLIENT_SETTINGS,
    merge_settings,
    parse_connection_setting,
    parse_schema_registry_setting,
    rename_to_dotted_names,
)
from streams.settings.client_tags import ClientTags, TagKeys, check_tag_keys
from streams.settings.environment import check_environment_variables, leave_out_service_addresses
from streams.settings.exception_handlers import ExceptionHandler, ExceptionHandlers, parse_handler
from streams.settings.offset_reset import STOP_WORDS, parse_reset_policy
from streams.settings.optimizations import parse_optimizations
from streams.settings.query_settings import PORT_MAX, QuerySettings
from streams.settings.setting_origins import ENVIRONMENT_PREFIX, SettingOrigins
from streams.settings.settings_file import SettingsFile
from streams.settings.source_settings import SourceSettings
from streams.settings.topology_settings import TopologySettings
from streams.settings.uncaught_exceptions import (
    UncaughtExceptionHandler,
    UncaughtExceptionResponse,
    parse_uncaught_handler,
)
from streams.settings.validation_messages import explain_validation_error

EMBEDDED = "embedded"

_PORT_SETTINGS = ("health_port", "metrics_port", "query_port")


Positive = Annotated[int, Field(ge=1)]
NonNegative = Annotated[int, Field(ge=0)]
NonNegativeOrMinusOne = Annotated[int, Field(ge=-1)]
Port = Annotated[int | None, Field(ge=0, le=PORT_MAX)]
Handler = Annotated[ExceptionHandler, PlainValidator(parse_handler)]
UncaughtHandler = Annotated[UncaughtExceptionHandler, PlainValidator(parse_uncaught_handler)]


class StreamsConfig(
    AssignmentSettings,
    ClientOptions,
    QuerySettings,
    SourceSettings,
    TopologySettings,
    BaseSettings,
):
    """Holds the settings of one application, each checked at construction; durations in ms."""

    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX,
        extra="forbid",
        frozen=True,
        # It may be a secret, in `connection` or in a setting whose name is wrong.
        hide_input_in_errors=True,
    )

    bootstrap_servers: str = EMBEDDED
    """`embedded`, or addresses of a Kafka cluster as host:port,host:port."""
    processing_guarantee: choices.ProcessingGuarantee = "exactly_once_v2"
    """`exactly_once` has a producer and a transaction for each task, as before KIP-447."""
    group_protocol: choices.GroupProtocol = "classic"
    """Who assigns tasks: `classic`: a worker; `streams`: the broker (KIP-1071); `auto`."""
    commit_interval_ms: Annotated[int | None, Field(ge=0)] = None
    """Default 100 with exactly once, 30 000 with at least once, as in Kafka Streams."""
    num_stream_threads: Positive = 1
    topology_optimization: str = "none"
    """`all`, or Kafka Streams' names with commas between (`streams.settings.optimizations`)."""
    state_dir: Path = Path("~/.local/state/millrace")
    state_cleanup_delay_ms: NonNegative = 600_000
    """How long the directory of a task that runs elsewhere is kept."""
    rocksdb_memory_max_bytes: Annotated[int, Field(ge=8 << 20)] = 256 << 20
    """RocksDB's memory for all stores of the process: the block cache and write buffers, those of a
    restore too. At least 8 MiB."""
    replication_factor: int = -1
    """The replication factor of internal topics; -1 takes the broker's default."""
    auto_offset_reset: str = "earliest"
    """Where to start on an input partition for which nothing has been committed: `earliest`,
    `latest`, `none` (the thread stops) or `by_duration:PT24H` (`streams.settings.offset_reset`)."""
    offset_out_of_range: str = "fail"
    """Where to go on when an input's offset is outside of its topic: `fail` (the thread stops),
    `earliest`, `latest` or `by_duration:PT24H`. The log and the counters say what was skipped."""
    changelog_out_of_range: Literal["fail", "earliest"] = "fail"
    """What happens to a store that needs records which its changelog has lost: `fail` (the thread
    stops), or `earliest` (the store is restored from what is there)."""
    transaction_timeout_ms: int = 10_000
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    """How long the group waits for a member in a rebalance, and how long a record may take: a
    thread that is stuck for longer leaves the group, and others get its tasks."""
    task_timeout_ms: Positive = 300_000
    """How long recoverable errors may go on without one commit before the thread gives up."""
    request_timeout_ms: int = 30_000
    cache_max_bytes: NonNegative = 10 * 1024 * 1024
    """Memory for the objects that stores cache, over all stores and threads of the process (Kafka
    Streams: statestore.cache.max.bytes). 0: none is kept beyond its transaction."""
    num_standby_replicas: NonNegative = 0
    """How many standby tasks each task with state has: copies of its stores in other state
    directories, kept up to date from the changelogs."""
    max_warmup_replicas: Positive = 2
    """How many tasks at a time may be restored where they are to move to, while they still run
    where they are (KIP-441)."""
    acceptable_recovery_lag: NonNegative = 10_000
    """Up to how many changelog records may be missing where a task is moved to at once."""
    probing_rebalance_interval_ms: Positive = 600_000
    """How often members join again while tasks warm up, to move those that have caught up. Kafka
    Streams takes no less than 60 000."""
    client_tags: ClientTags = {}
    """Where this worker runs, by keys of your own such as `zone` (KIP-708): at most 5, keys of 20
    and values of 30 characters."""
    rack_aware_assignment_tags: TagKeys = []
    """The keys of `client_tags` whose values differ between a task and its standby tasks, as far
    as there are workers that allow it."""
    repartition_purge_interval_ms: Positive = 30_000
    """How often consumed records of repartition topics are deleted."""
    shutdown_timeout_ms: Positive = 30_000
    """How long a worker that is told to stop may take to commit and leave; then it ends anyway."""
    uncaught_exception_handler: UncaughtHandler = UncaughtExceptionResponse.SHUTDOWN_CLIENT
    """The response to an error that ends a thread: `shutdown_client`, `shutdown_application`,
    `replace_thread`, or a function of the error that returns one of them."""
    stuck_after_ms: Positive = 30_000
    """How long a thread may be in one function with one record before it counts as stuck."""
    log_values: Literal["none", "types", "full"] = "types"
    """How much messages show of the keys and values of records."""
    health_port: Port = None
    """Where to answer GET /health, /live and /metrics, on `health_host`; 0 picks a free port. The
    second worker of `--workers` has the next port, and so on."""
    metrics_port: Port = None
    """Where to answer GET /metrics alone; ports are counted up as for `health_port`."""
    health_host: str = "127.0.0.1"
    """The address of `health_port` and `metrics_port`: 0.0.0.0 for all of the machine."""
    broker_metrics_port: Annotated[int | None, Field(ge=1, le=PORT_MAX)] = None
    """The port for GET /metrics of the embedded broker on 127.0.0.1, from its next start on."""
    metrics_recording_level: choices.RecordingLevelName = "info"
    """Up to which level metrics are recorded: `debug` costs time at each call of a store."""
    log_level: choices.LogLevel = "info"
    """From which level on `App.run` logs, unless the process has configured logging before."""
    log_format: choices.LogFormat = "text"
    """How it logs: for people, or a JSON object a line."""
    max_poll_records: Positive = 1_000
    """Records taken from the consumer at a time."""
    deserialization_handler: Handler = "fail"
    """What to do about a record that can't be read: `fail`, `skip` or `dead_letter:<topic>`; in
    Python also `dead_letter("topic")`, or a function of an `ErrorContext` that returns one."""
    processing_handler: Handler = "fail"
    """What to do about a record for which a function or a processor raises; values as for
    `deserialization_handler`."""
    production_handler: Handler = "fail"
    """What to do about a record that can't be written: a serde refuses it, it is too large, its
    topic does not exist. Values as for `deserialization_handler`. What the broker refuses later
    fails its transaction."""
    metadata_max_age_ms: Positive = 300_000
    """How often the group's leader checks whether inputs have got more partitions."""
    max_task_idle_ms: NonNegativeOrMinusOne = 0
    """How long a task that reads several partitions waits for one without records: -1 not at all, 0
    while the broker has records that it has not fetched yet, above 0 so much longer."""
    buffered_records_per_partition: Positive = 10_000
    """A task that reads several partitions pauses one of which more records than this wait.

    Of large records fewer wait: 4 MiB."""
    statestore_uncommitted_max_bytes: NonNegativeOrMinusOne = 64 * 1024 * 1024
    """About how much memory uncommitted writes of a worker may take before there is an early
    commit; -1: any (KIP-892)."""
    cut_retention_ms: NonNegative = 0
    """How long the state of a consistent cut can be read for certain: changelogs are created with
    this `min.compaction.lag.ms`. 0: as long as nothing of it happens to be compacted."""
    ledger: bool = False
    """Whether each transaction records in `<application.id>-ledger` what it read and wrote."""
    clock_shift_file: Path | None = None
    """For tests: a file with the ms by which the worker's wall clock is shifted, read again when it
    changes."""
    connection: Annotated[ConnectionSettings, PlainValidator(parse_connection_setting)] = (
        ConnectionSettings()
    )
    """How to reach a secured cluster, by librdkafka's names: `security.protocol`, `sasl.*`, `ssl.*`
    (`streams.connection.settings`). All clients have them."""
    consumer: dict[str, Any] = {}
    producer: dict[str, Any] = {}
    schema_registry: Annotated[
        SchemaRegistrySettings, PlainValidator(parse_schema_registry_setting)
    ] = SchemaRegistrySettings()
    """How to reach the schema registry of serdes that are made with `registry=app.schema_registry`,
    by confluent-kafka's names: `url`, `basic.auth.user.info`, `ssl.*`, `bearer.auth.*`."""

    @property
    def exactly_once(self) -> bool:
        """Return whether `processing_guarantee` is `exactly_once` or `exactly_once_v2`."""
        return self.processing_guarantee != "at_least_once"

    @property
    def rack(self) -> str:
        """Return the rack of the consumers that read inputs; empty if none is set."""
        return find_client_rack(self.client_rack, self.consumer, self.main_consumer)

    @property
    def accepts_changelog_loss(self) -> bool:
        """Return whether stores are restored from changelogs that have lost their first records."""
        return self.changelog_out_of_range == "earliest"

    @property
    def commit_every_ms(self) -> int:
        """Return the commit interval in force: as set, else the guarantee's default."""
        if self.commit_interval_ms is not None:
            return self.commit_interval_ms
        return 100 if self.exactly_once else 30_000

    def records_metrics(self, level: choices.RecordingLevelName) -> bool:
        """Return whether metrics of this level are recorded."""
        levels = get_args(choices.RecordingLevelName)
        return levels.index(level) <= levels.index(self.metrics_recording_level)

    @property
    def handlers(self) -> ExceptionHandlers:
        """Return the deserialization, processing and production handlers together."""
        return ExceptionHandlers(
            self.deserialization_handler, self.processing_handler, self.production_handler
        )

    @field_serializer("connection", "schema_registry")
    def _hide_secrets(self, given: ConnectionSettings | SchemaRegistrySettings) -> dict[str, Any]:
        """Return connection settings with hidden secrets, for a dump that people and logs show."""
        return given.hide_secrets()

    @field_validator("topology_optimization")
    @classmethod
    def _check_optimizations(cls, value: str) -> str:
        parse_optimizations(value)
        return value

    @field_validator("state_dir")
    @classmethod
    def _expand_state_dir(cls, path: Path) -> Path:
        return path.expanduser().absolute()

    @field_validator("bootstrap_servers")
    @classmethod
    def _check_addresses(cls, servers: str) -> str:
        if servers != EMBEDDED:
            try:
                parse_addresses(servers)
            except ValueError as error:
                raise ValueError(f"{error} (or 'embedded' for a broker of ours)") from None
        return servers

    @field_validator("health_host")
    @classmethod
    def _unbracket_host(cls, host: str) -> str:
        return strip_brackets(host)

    @field_validator("auto_offset_reset", "offset_out_of_range")
    @classmethod
    def _check_offset_resets(cls, text: str, info: ValidationInfo) -> str:
        parse_reset_policy(text, stop_word=STOP_WORDS[info.field_name or ""])
        return text

    @field_validator(*LIBRDKAFKA_SETTINGS, mode="before")
    @classmethod
    def _flatten_client_settings(cls, settings: Any) -> Any:
        """Flatten tables of client settings to dotted names.

        In TOML `fetch.min.bytes = 1` without quotes is a table in a table.
        """
        return dict(flatten_tables(settings)) if isinstance(settings, dict) else settings

    @field_validator(*LIBRDKAFKA_SETTINGS)
    @classmethod
    def _refuse_settings_that_break_guarantee(cls, settings: dict[str, Any]) -> dict[str, Any]:
        for name in settings:
            if name in RESERVED_CLIENT_SETTINGS:
                raise ValueError(f"{name} can't be set: {RESERVED_CLIENT_SETTINGS[name]}")
            if is_security_setting(name):
                raise ValueError(f"{name} can't be set here: all clients need it, set connection")
        return settings

    @model_validator(mode="after")
    def _check_guarantee_settings(self) -> StreamsConfig:
        if self.exactly_once and self.commit_every_ms >= self.transaction_timeout_ms:
            raise ValueError(
                f"commit_interval_ms ({self.commit_every_ms}) must be below "
                f"transaction_timeout_ms ({self.transaction_timeout_ms})"
            )
        if self.ledger and not self.exactly_once:
            raise ValueError("ledger needs exactly once: without transactions nothing is in a cut")
        check_compaction_lag(self.topic_defaults, self.cut_retention_ms)
        if self.exactly_once:
            check_delivery_timeout(self.producer, self.transaction_timeout_ms)
        return self

    @model_validator(mode="after")
    def _check_assignment(self) -> StreamsConfig:
        check_tag_keys(self.rack_aware_assignment_tags, self.client_tags)
        check_assignor_protocol(self.task_assignor, self.group_protocol)
        return self

    @model_validator(mode="after")
    def _check_heartbeat_interval(self) -> StreamsConfig:
        if not 0 < self.heartbeat_interval_ms < self.session_timeout_ms:
            raise ValueError(
                f"heartbeat_interval_ms ({self.heartbeat_interval_ms}) must be between 0 and "
                f"session_timeout_ms ({self.session_timeout_ms})"
            )
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[Any, ...]:
        return (
            lambda: rename_to_dotted_names(init_settings()),
            lambda: rename_to_dotted_names(leave_out_service_addresses(env_settings())),
            SettingsFile(settings_cls),
        )


def load_config(
    file: Path | None = None, options: Mapping[str, Any] | None = None, /, **arguments: Any
) -> StreamsConfig:
    """Load and check the settings from all sources, in rising order.

    These are the `file`, the environment, the `arguments` of `App`, and the command line's
    `options`. Raises ConfigError with one message that names each wrong setting and its source.
    """
    if file is not None and not file.is_file():
        raise ConfigError(f"config file {str(file)!r} does not exist")

    class FromFile(StreamsConfig):
        model_config = SettingsConfigDict(toml_file=file)

    check_environment_variables(StreamsConfig.model_fields)
    origins = SettingOrigins(file, arguments.keys(), (options or {}).keys())
    try:
        loaded = FromFile(**merge_settings(arguments, dict(options or {})))
    except ValidationError as error:
        raise ConfigError(
            explain_validation_error(error, StreamsConfig.model_fields, origins)
        ) from None
    except ValueError as error:  # the file is not valid TOML
        raise ConfigError(f"config file {str(file)!r}: {error}") from None
    values = {name: getattr(loaded, name) for name in StreamsConfig.model_fields}
    return StreamsConfig.model_construct(**values)


def check_ports(config: StreamsConfig, workers: int) -> None:
    """Raise ConfigError if the workers' ports, one after the other, exceed the highest port."""
    for name in _PORT_SETTINGS:
        port = getattr(config, name)
        if port and port + workers - 1 > PORT_MAX:
            raise ConfigError(
                f"{name} {port}: {workers} workers would take the ports {port} to "
                f"{port + workers - 1}, and {PORT_MAX} is the last one"
            )
