"""Derive which rights an application needs on a cluster, and under which names.

Start reading at `acls`. Nothing here asks a broker.
"""
