"""Derive what an application's stores and topics should hold from its topology and inputs.

Each sub-topology is looked at alone: what its source topics have below the cut, repartition topics
included, and what follows from it. Four ways, in this order:

    computed    counts, and what is declared commutative, by Spark's own grouping (`aggregation`)
    one by one  steps that look at a record at a time: the user's functions, on executors
    in order    anything else that one topic determines: the product's own steps, in memory, over
                each partition in the order of its offsets (`replay`)
    by ledger   what several topics determine, or commits: the same in the order that the ledger
                tells (`ledger_replay`)

Start reading at `derive`, then `plan`, which chooses the way of each step by `determinism`. What
none of them can do is refused, by the name of the step. Nothing is computed before somebody looks
at an account, but for what may have been late.
"""
