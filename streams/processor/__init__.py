"""The processor API: records, processors, and what a processor may do."""
