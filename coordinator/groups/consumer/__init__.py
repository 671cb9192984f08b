"""Consumer groups (KIP-848): membership and assignment decided by the broker."""
