"""Hold what an operator installs: alert rules, dashboards, and what generates them."""
