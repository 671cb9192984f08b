"""Export the test driver: an application in one process, without a broker."""

from streams.testing import DriverTopic, MockProcessorContext, TopologyTestDriver

__all__ = ["DriverTopic", "MockProcessorContext", "TopologyTestDriver"]
