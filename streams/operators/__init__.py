"""Implement what each step does to a record, as a closure that is bound to one task.

Start reading at `map`, the smallest, then at `aggregate`; `streams.topology.compile` chains them.
No operator asks a broker, or looks a name up while records flow.
"""
