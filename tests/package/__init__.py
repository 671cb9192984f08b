"""Test what is published: wheel and sdist, and their installation for each Python."""
