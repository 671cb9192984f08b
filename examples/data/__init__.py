"""Provide the inputs of the examples: one module each, with the records of its topics.

All but the words are generated: made up, and like what they stand for in what matters to the
example. The same seed makes the same records. `python -m examples.feed page_views` writes them.
"""
