"""Check and hold the settings of connections to a cluster: protocol, certificates, credentials.

Start reading at `settings`, then `security`, what all clients share. Secrets never reach a text
that is shown or logged, and nothing here opens a connection for records.
"""
