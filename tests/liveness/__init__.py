"""Test workers that hang, whose broker is away, and that are told to stop, in real processes."""
