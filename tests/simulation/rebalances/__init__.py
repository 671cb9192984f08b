"""Simulate groups of up to 30 members whose tasks are light: a restore takes time, and no records.

Membership, joins, rebalances and the assignment are the product's own, on the broker's own group
coordinator.
"""
