"""Query an application under kills, and check each answer against the history of its inputs."""
