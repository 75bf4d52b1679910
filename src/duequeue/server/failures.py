"""Records of failures: where they happened, but not their texts, which may quote a payload."""

from traceback import format_tb


def traceback_of(error: BaseException) -> str:
    """Return the traceback of an error and of what caused it, without their texts."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:  # a cause may lead back to its error
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    return "".join(_one(each) for each in reversed(causes))


def _one(error: BaseException) -> str:
    places = "".join(format_tb(error.__traceback__))
    return f"Traceback (most recent call last):\n{places}{type(error).__name__}\n"
