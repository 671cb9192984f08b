"""A topology run in one process, at once, without a broker: for the tests of an application.

driver    TopologyTestDriver: what a test talks to
topic     one topic of it: records in and out, with their serdes
life      the product's stream loop from its start to its end, or to kill -9
order     which record is next, where several could be
cluster   the broker in memory: logs, transactions, committed offsets
clients   the product's clients on that cluster; member: a group of one
machine   clocks that a test moves; scratch: the state directory, and what kill -9 leaves of it
store     what the stores hold

Everything from the loop down to the stores is the product's own: what is not, is a client that
would reach a broker, the broker, and the machine.
"""

from streams.testing.driver import TopologyTestDriver
from streams.testing.topic import DriverTopic

__all__ = ["DriverTopic", "TopologyTestDriver"]
