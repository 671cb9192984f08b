"""Hold the version of Millrace, which the build reads from here."""

VERSION = "0.1.0"
"""Is known without the metadata of an installation: a zip for Spark, or a checkout, has none."""
