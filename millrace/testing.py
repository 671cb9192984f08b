"""Export the test driver: an application in one process, without a broker."""

from streams.testing import DriverTopic, TopologyTestDriver

__all__ = ["DriverTopic", "TopologyTestDriver"]
