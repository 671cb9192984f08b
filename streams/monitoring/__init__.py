"""Report how a worker is: its health, its metrics, and HTTP endpoints for both."""
