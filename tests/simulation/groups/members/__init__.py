"""Members of groups as clients are: they join, heartbeat, commit, and believe what they own."""
