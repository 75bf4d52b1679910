"""Records of failures: where they happened, but not their texts, which may quote a payload."""

from traceback import format_tb


def traceback_of(error: BaseException) -> str:
    """Return the traceback of an error and of what caused it, without their texts."""
    causes = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None:
        causes.append(cause)
    return "".join(_one(each) for each in reversed(causes))


def _one(error: BaseException) -> str:
    places = "".join(format_tb(error.__traceback__))
    return f"Traceback (most recent call last):\n{places}{type(error).__name__}\n"
