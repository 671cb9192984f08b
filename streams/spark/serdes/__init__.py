"""Keys and values between bytes and Arrow columns."""
