"""Turn a graph of steps into a topology: expand, optimize, check, divide and compile it.

Start reading at `build`, which calls the steps in their order; `compile` makes the closures of a
task, `compare_versions` serves `millrace plan`. Nothing here asks a broker or opens a store.
"""
