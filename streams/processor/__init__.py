"""Define the processor API: records, processors, and the context of a processor."""
