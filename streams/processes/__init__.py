"""Run a worker, or several processes of them, and the embedded broker; and end them.

Start reading at `foreground`, which is what `App.run` does, then `launch`, `start` and `running`.
Processes are ended by their pid, and what the embedded broker does is none of this package's
business.
"""
