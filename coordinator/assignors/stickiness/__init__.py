"""Keep what members own, and balance the rest: shared by `sticky` and `cooperative_sticky`.

Start reading at `claims`, which decides who owned what. Where all members are subscribed to the
same topics, `constrained` assigns by quotas; otherwise `general` moves partitions one by one until
no move balances better. Both look at racks (KIP-881) through `racks`. The rules are those of
Kafka's AbstractStickyAssignor.

Where Kafka's class breaks the contract of an assignor, ours does not: a member never gets a
partition of a topic that it isn't subscribed to, and claims to partitions that don't exist count
for nothing.
"""
