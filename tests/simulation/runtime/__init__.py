"""Simulate workers, their clients and their stores, on a broker that crashes."""
