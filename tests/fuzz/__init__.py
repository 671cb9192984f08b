"""Send bytes that no honest client sends: mutations of what honest clients do send.

Whatever comes, the broker answers with an error or closes that connection, in a bounded time and a
bounded memory; no other exception escapes, and the others are served on.
"""
