"""Test decisions about streams groups, and their records."""
