"""Read stores as tables, as of a cut, from their changelogs.

Start reading at `store_reader`. Stores are rebuilt from changelogs up to a cut: no running worker
is asked, and no state directory is read.
"""
