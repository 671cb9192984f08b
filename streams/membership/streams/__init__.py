"""Keep a membership of a streams group (KIP-1071), to whose members the broker assigns tasks.

Start reading at `member_state`, which has the table of states, then `member` and
`heartbeat_loop`. Only messages of Kafka's protocol are made and read in `heartbeat_request`.
"""
