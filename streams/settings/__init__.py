"""Define and parse the settings of an application."""
