"""Reconcile an application under load and kills, again and again."""
