"""Implement the command `millrace`.

Start reading at `cli`, which has the short ones, then `root`. A command prints and exits; what it
shows is computed elsewhere, and no other package imports from here.
"""
