"""Implements the transaction coordinator: which transaction a producer is in, and how it ends."""
