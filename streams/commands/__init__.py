"""Implement the command `millrace`.

Start reading at `root`, which names the file of each command: `millrace plan` is `plan_command`. A
command prints and exits. The files that don't end in `_command` find out and write what commands
show and do; no other package imports from here.
"""
