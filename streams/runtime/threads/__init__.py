"""Run the stream threads of a worker: loop, membership, commits and recovery.

Start reading at `loop`, one turn of a thread, then `commit` and `thread_recovery`; `assembly` puts
a thread together. What a single task does with a record is in `streams.runtime.tasks`.
"""
