"""A payment service on FastAPI and SQLAlchemy: an order that nobody pays expires."""
