"""Changelogs and outputs as Parquet with a manifest, and whether that is still true."""
