"""Compare what an application's stores and topics hold with what its inputs say."""
