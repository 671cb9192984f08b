"""How an application's own tests look; docs/testing.md explains them."""
