"""Export changelogs and outputs as Parquet with a manifest, and verify such exports."""
