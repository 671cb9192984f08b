"""Groups of several clients: members join, leave, crash and come back while records flow."""
