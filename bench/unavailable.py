"""Raised if the machine lacks something that a measurement needs."""


class Unavailable(Exception):
    """The reason why there is no measurement, and a remedy; the report shows it."""
