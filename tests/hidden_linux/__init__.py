"""Hide what only Linux has, for tests that run an application as on another system."""
