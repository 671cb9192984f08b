"""Define the processor API: records, processors, and the context of a processor.

Start reading at `processor`, then `context`. What runs a processor is in `streams.operators`.
"""
