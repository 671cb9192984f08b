"""CI: its parts, how they are run side by side, and how long each may take."""
