"""Show how an application tests itself; docs/testing.md explains it."""
