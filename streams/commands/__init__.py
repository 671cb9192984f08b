"""Implement the command `millrace`.

Start reading at `root`, which names the file of each command: `millrace plan` is `plan_command`. A
command prints and exits; what it shows is computed elsewhere, and no other package imports from
here.
"""
