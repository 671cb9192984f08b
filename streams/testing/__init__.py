"""Run a topology in one process, at once, without a broker: for the tests of an application.

Start reading at `driver`, then `process`. A test of an application needs nothing else from here.

    driver          TopologyTestDriver: what a test calls
    driver_setup    which topics exist, and where its stores are
    mock_processor_context   a context for one processor alone
    topic           one topic of it: records in and out, with their serdes
    topic_serdes    which serdes those are, from the topology
    supervisor      the process of the application: its start, its crash, why it ended
    process         the product's stream loop from its start to its end, or to kill -9
    head_stamping   the extracted time of each next record
    record_order    which record is next, where several could be
    cluster         the broker in memory: logs, transactions, committed offsets
    clients         the product's clients on that cluster; member: a group of one
    produce_arguments   what confluent-kafka refuses in a producer's arguments
    simulated_host  clocks that a test moves; state_directory: what kill -9 leaves on disk
    store           what the stores hold
    commit_steps    an application on a real broker, observed at each step of its commits

Everything from the loop down to the stores is the product's own. Only the clients that would reach
a broker, the broker and the machine are simulated, and nothing is for `commit_steps`.
"""

from streams.testing.driver import TopologyTestDriver
from streams.testing.mock_processor_context import MockProcessorContext
from streams.testing.topic import DriverTopic

__all__ = ["DriverTopic", "MockProcessorContext", "TopologyTestDriver"]
