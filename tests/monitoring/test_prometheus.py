"""Test with a real Prometheus, a broker and three workers: dashboards have data, faults alerts.

Rules and queries have their durations divided by 60, so that five minutes are five seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from threading import Event, Thread

import pytest
from confluent_kafka import Producer

from ops.generate.dashboard_list import list_dashboards
from ops.generate.dashboards import Panel
from ops.generate.queries import scale_durations
from tests.monitoring import public_dashboards
from tests.monitoring.monitored import TIME_SCALE, WORKERS, Monitored
from tests.monitoring.prometheus import APPLICATION, fetch, run_promtool, wait_until_seen

GIVEN = (
    *("", "where the topology has stores", "where stores are on disk"),
    *("at the recording level debug", "where queries are served"),
)
"""The conditions of panels that the application meets: these have data."""
FOREIGN = ("kafka_streams_", "kafka_consumer_", "kafka_producer_")
QUIET_S, LOOKBACK_S = 12, 6
"""As long as the longest range of P0 and P1 at this scale, and how far rates look back: a machine
that stalls before that can't be seen in them any more."""


@pytest.fixture(scope="module")
def monitored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monitored]:
    with ExitStack() as exits:
        yield Monitored(tmp_path_factory.mktemp("monitored"), exits)


def find_queries(panel: Panel) -> list[str]:
    return [
        scale_durations(query, TIME_SCALE).replace("$application", ".*").replace("$instance", ".*")
        for query in panel.queries.values()
    ]


def wait_for_clients(monitored: Monitored) -> list[str]:
    """Return the client ids of all workers, once they have been scraped."""
    clients: list[str] = []

    def all_workers_are_scraped() -> bool:
        clients[:] = monitored.prometheus.find_label_values(public_dashboards.CLIENTS, "client_id")
        return len(clients) == WORKERS

    wait_until_seen(all_workers_are_scraped, what=lambda: f"only {clients} are scraped")
    return clients


def test_the_figures_are_well_formed(monitored: Monitored) -> None:
    """Those under Kafka's names are left out: gauges there may end in `_total`."""
    for port in monitored.metrics_ports:
        lines = fetch(port, "/metrics")[1].splitlines(keepends=True)
        ours = [line for line in lines if not any(each in line for each in FOREIGN)]
        run_promtool("check", "metrics", text="".join(ours))


def test_each_panel_of_a_dashboard_has_data_while_records_are_processed(
    monitored: Monitored,
) -> None:
    stop = Event()

    def load() -> None:
        while not stop.wait(0.2):
            monitored.produce(*["word"] * 50)
            for worker in monitored.workers:
                fetch(worker.query_port, "/stores/counts/1")

    producing = Thread(target=load)
    producing.start()
    try:
        panels = [panel for each in list_dashboards() for panel in each.panels]
        empty = {each.title: each for each in panels}

        def have_data() -> bool:
            for title, panel in list(empty.items()):
                # A query that is wrong fails here, whether it has data or not.
                found = [bool(monitored.prometheus.query(query)) for query in find_queries(panel)]
                if all(found) or panel.needs not in GIVEN:
                    del empty[title]
            return not empty

        wait_until_seen(have_data, what=lambda: f"without data: {sorted(empty)}")
    finally:
        stop.set()
        producing.join()


def test_the_clients_tell_how_many_records_they_have_read_and_written(monitored: Monitored) -> None:
    monitored.produce(*["word"] * 100)
    names = (
        "kafka_consumer_consumer_fetch_manager_metrics_records_consumed_total",
        "kafka_producer_producer_metrics_record_send_total",
    )

    def agree() -> bool:
        counted = "sum(millrace_step_records_total)"
        queries = (f"sum({names[0]}) == {counted}", f"sum({names[1]}) >= {counted}")
        return all(monitored.prometheus.query(each) for each in queries)

    wait_until_seen(agree, what=lambda: str([monitored.prometheus.query(each) for each in names]))


def test_a_public_dashboard_for_rocksdb_shows_figures_of_each_thread(monitored: Monitored) -> None:
    prometheus = monitored.prometheus
    clients = wait_for_clients(monitored)
    threads = prometheus.find_label_values(public_dashboards.THREADS, "thread_id")
    empty = set[str]()

    def have_data() -> bool:
        empty.clear()
        for client in clients:
            of_client = [each for each in threads if each.startswith(client)]
            assert of_client, f"no thread of {client} among {threads}"
            for thread in of_client:
                queries = public_dashboards.list_queries(APPLICATION["env"], client, thread)
                empty.update(each for each in queries if not prometheus.query(each))
        return not empty

    wait_until_seen(have_data, what=lambda: f"without data: {sorted(empty)}")


def test_an_application_that_has_no_input_any_more_fires_no_alert(monitored: Monitored) -> None:
    """It comes before the faults, as `millrace metrics` marks what has happened for 300 s."""
    monitored.wait_for_alerts()
    assert monitored.find_alerts_in_quiet(QUIET_S, LOOKBACK_S) == set()
    monitored.wait_for_marks()


def test_another_process_takes_the_transactional_ids_of_workers(monitored: Monitored) -> None:
    """A sample of the faults in `test_faults`, which `make ci-full` runs."""
    monitored.wait_for_alerts()
    clients = wait_for_clients(monitored)

    def fence() -> None:
        for client in clients:
            producer = Producer(
                {
                    "bootstrap.servers": monitored.broker.bootstrap_servers,
                    "transactional.id": f"{client}-0",
                }
            )
            producer.init_transactions(10)
        monitored.produce(*["word"] * 20)

    monitored.provoke_alerts(fence, "MillraceFencing", "MillraceRecoveries")
    monitored.wait_for_alerts()


def test_faults_fire_their_alerts_and_no_others(monitored: Monitored) -> None:
    # A flood of dead letters, until its alert fires; it ends with the flood.
    def flood() -> bool:
        monitored.produce(*["bad"] * 100)
        return bool(monitored.prometheus.list_firing())

    wait_until_seen(flood, what="an alert on dead letters")
    monitored.wait_for_alerts("MillraceDeadLetters")
    monitored.wait_for_alerts()

    # A worker that is killed, and comes back.
    killed = monitored.workers[0]
    killed.kill()
    assert "workers" in monitored.list_marked()
    monitored.wait_for_alerts("MillraceWorkerDown")
    killed.spawn_worker()
    killed.wait_until_running()
    monitored.wait_for_alerts()

    # A function that hangs.
    monitored.produce("hang")
    monitored.wait_for_alerts("MillraceThreadStuck", "MillraceWorkerNotLive")
    hanging = next(each for each in monitored.workers if fetch(each.port, "/live")[0] != 200)
    assert "check" in fetch(hanging.port, "/health")[1]

    # The broker is away.
    monitored.broker.kill()
    monitored.wait_for_alerts(
        "MillraceBrokerDown",
        "MillraceThreadStuck",
        "MillraceWorkerNotLive",
        "MillraceWorkerUnhealthy",
    )
    assert {"workers", "threads"} <= monitored.list_marked()
