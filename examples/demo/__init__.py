"""Demonstrate exactly-once: `make demo` counts words of real input, kills processes and checks."""
