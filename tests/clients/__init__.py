"""Test that clients of others, in their own languages, work with each broker."""
