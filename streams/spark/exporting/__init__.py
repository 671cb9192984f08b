"""Export changelogs and outputs as Parquet with a manifest, and verify such exports.

Start reading at `export`, then `verify`. An export is of one cut, and is never changed afterwards.
"""
