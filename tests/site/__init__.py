"""Test the documentation as a site, after `mkdocs build` (see `make docs`)."""
