"""Convert keys and values between bytes and Arrow columns."""
