"""Convert groups from the classic protocol to KIP-848's and back while they are in use."""
