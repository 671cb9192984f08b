"""Show three ways to test an application, which docs/testing.md explains."""
