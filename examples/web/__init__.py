"""Serve the results of an application by an API of its own, with FastAPI in front."""
