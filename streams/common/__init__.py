"""Hold plain values, hashes and the machine as an argument: all other packages may import them."""
