"""Find in logs what went wrong: in ours, in those of Kafka Streams, and in those of brokers.

    sources     reads files as blocks of whole lines, compressed ones too
    patterns    what is looked for, as a table; `scanning` finds the lines with it
    headers     time, level and message of a line, in each format
    events      a line that was found, with what it is about
    incidents   groups events that belong together, in bounded memory
    causes      names the likely cause of an incident
    report      what is printed, or shown with --json

Start reading at `report.analyze_logs`. A log may have 10 GB: re2 searches a block for all patterns
at once, and only lines that have one are looked at in Python.
"""
