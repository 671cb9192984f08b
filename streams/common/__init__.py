"""Hold plain values, hashes and the machine as an argument: all other packages may import them.

Start reading at `host`, the machine that simulations replace. Nothing here knows streams, stores or
a broker.
"""
