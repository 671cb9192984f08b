"""The group coordinator: who is in a group, at which generation, with which assignment."""
