"""The demonstration behind `make demo`: word count on real input, with kills, and the books."""
