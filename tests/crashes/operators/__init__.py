"""Applications with many operators under crashes: their results equal the truth of a plain loop."""
