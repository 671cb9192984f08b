"""Copy whole topics into each worker for global tables.

Start reading at `tables`. A copy is whole before the first record is processed, and no step writes
to it.
"""
