"""Seeded bugs all over the product, and proof that the tests find each of them."""
