"""Which errors of Redis are worth a retry, and how they are raised."""

from math import inf

from redis.exceptions import (
    AskError,
    AuthenticationError,
    AuthorizationError,
    ClusterDownError,
    NoScriptError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import TimeoutError as NoAnswer

from duequeue.errors import StoreError, StoreUnavailable
from duequeue.stores.redis_client.nodes import ANSWER_WITHIN
from duequeue.stores.redis_client.settings import RedisSettings, Way

# How other replies begin after which a later try may succeed.
_TRANSIENT = ("NOREPLICAS", "BUSY", "MISCONF", "UNBLOCKED")
# Another server has to be asked, because this one was demoted or no longer has the slot. Redis 6
# puts an error inside a script into the middle of its message.
_MOVED = (ReadOnlyError, AskError, ClusterDownError)
# A host name that nobody knows will not be known at the next try either.
_REFUSALS = ("Name or service not known", "nodename nor servname", "No address associated")


def translate(
    error: RedisError | OSError, settings: RedisSettings, seconds: float = inf
) -> StoreError:
    """Return the DueQueue error for the error of a call that had some seconds."""
    if isinstance(error, AskError) and settings.way is not Way.CLUSTER:
        return StoreError(
            f"Redis at {settings.address}: it is a node of a cluster, and another node has this "
            "queue; begin the url with redis+cluster://"
        )
    words = settings.clean(" ".join(str(error).split()))
    if isinstance(error, NoAnswer):
        words = f"no answer within {min(seconds, ANSWER_WITHIN):.3g} s"
    if is_full(error):
        words = (
            "it is full (maxmemory), so it takes no new messages; those that it has can still be "
            f"polled, settled and dropped: {words}"
        )
    kind = StoreUnavailable if is_transient(error) else StoreError
    return kind(f"Redis at {settings.address}: {words}")


def is_transient(error: RedisError | OSError) -> bool:
    """Return whether the same operation may succeed later."""
    if isinstance(error, AuthenticationError | AuthorizationError):
        return False
    if isinstance(error, LostConnection | NoAnswer | OSError):
        return not any(refusal in str(error) for refusal in _REFUSALS)
    if is_full(error) or has_moved(error):
        return True
    return isinstance(error, TryAgainError | NoScriptError) or str(error).startswith(_TRANSIENT)


def is_full(error: BaseException) -> bool:
    """Return whether the server has no memory left."""
    return isinstance(error, ResponseError) and "command not allowed when used memory" in str(error)


def has_moved(error: BaseException) -> bool:
    """Return whether another server has to be asked from now on."""
    return isinstance(error, _MOVED) or (
        isinstance(error, ResponseError) and "-READONLY" in str(error)
    )


def leaves_it_usable(error: BaseException) -> bool:
    """Return whether the connection of a failed call can be used again, since it was answered."""
    return isinstance(error, ResponseError) and not has_moved(error)


def no_answer(seconds: float) -> NoAnswer:
    """Return the error of a call that got no answer."""
    return NoAnswer(f"no answer within {max(seconds, 0.0):.3g} s")
