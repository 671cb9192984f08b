"""Test groups of several clients whose members join, leave, crash and return while records flow."""
