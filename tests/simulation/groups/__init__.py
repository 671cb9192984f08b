"""Simulate members of every protocol that come, go and hang, on a broker that crashes, too."""
