"""Test that logs of real faults are explained, and that large logs are read in bounded memory."""
