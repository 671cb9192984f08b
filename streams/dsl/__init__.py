"""Offer streams and tables, whose methods describe an application step by step.

Start reading at `stream` and `table`; `builder` adds their steps to the graph. Nothing here runs:
what a step does to a record is in `streams.operators`, and no broker is asked.
"""
