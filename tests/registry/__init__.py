"""Test serdes with a schema registry that is not ours, and Protobuf beside Java's library."""
