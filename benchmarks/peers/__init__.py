"""Hold the programs that Millrace is measured beside."""
