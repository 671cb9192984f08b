"""Read stores as tables, as of a cut, from their changelogs."""
