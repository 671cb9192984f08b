"""Groups of consumers that go from the classic protocol to KIP-848's, and back, at work."""
