"""Provide members of groups that behave as clients do, and believe what they own."""
