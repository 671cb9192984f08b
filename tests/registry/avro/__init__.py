"""Compare Avro serdes with Avro's own library for Java."""
