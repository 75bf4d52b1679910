"""What a machine does not have, and a measurement needs."""


class Unavailable(Exception):
    """The reason why there is no measurement, and what would help; it goes into the report."""
