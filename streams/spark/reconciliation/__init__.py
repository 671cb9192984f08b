"""Compare what an application's stores and topics hold with what its inputs say.

Start reading at `reconcile`, then `derivation`. What can't be derived is named as not checked,
never taken for right.
"""
