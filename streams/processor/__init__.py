"""The processor API: records, processors, and the context in which a processor runs."""
