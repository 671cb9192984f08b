"""Define and parse the settings of an application.

Start reading at `config`, which has each setting once. Those of connections to a cluster are in
`streams.connection`; nothing here asks a broker whether a setting suits it.
"""
