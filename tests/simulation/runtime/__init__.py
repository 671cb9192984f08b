"""Histories of the runtime: workers, their clients and their stores, on a broker that crashes."""
