"""Coordinate groups: members, generations or epochs, assignments and committed offsets."""
