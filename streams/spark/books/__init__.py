"""Keeps the module names that programs imported before `streams.spark.reconciliation`."""
