"""Port the applications of `Ported.java`, line by line."""
