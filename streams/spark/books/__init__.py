"""Whether the stream's answer is the batch answer: what should be there, what is, the report."""
