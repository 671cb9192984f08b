"""Convert groups from the classic protocol to KIP-848's and back while they are in use.

Start reading at `policy`, then `upgrade`. Until all members have changed, `join`, `sync`,
`heartbeat` and `leave` decide requests of classic members in a consumer group, which
`groups.classic_protocol` passes here. A conversion loses no member and no offset, and is not begun
where one member could not follow.
"""
