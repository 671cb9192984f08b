"""Report how a worker is: its health, its metrics, and HTTP endpoints for both.

Start reading at `health`, then `metrics`. Nothing here slows the stream threads: it reads what they
have counted.
"""
