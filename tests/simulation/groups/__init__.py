"""Histories of groups: members of every protocol that come, go, hang and lie, on a broker that does
the same."""
