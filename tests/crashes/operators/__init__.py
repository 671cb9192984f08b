"""Test applications with many operators under crashes: their results equal a plain loop's."""
