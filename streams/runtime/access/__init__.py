"""Derive which rights an application needs on a cluster, and under which names.

Start reading at `acls`, then `resource_names`. Nothing here asks a broker, or grants a right.
"""
