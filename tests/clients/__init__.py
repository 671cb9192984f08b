"""Clients that are not ours, in their own languages, at work against each broker."""
