"""Keep a worker's thread a member of its group, and send what coordinators are asked.

Start reading at `group_member`, what the runtime sees, and `classic_member`, the one protocol that
is there. It decides no assignment (`streams.runtime.assigning.assignment`) and moves no records.
"""
