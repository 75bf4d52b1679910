"""Fencing tokens, whose last digit says how a message lost the leases before this one.

A message loses a lease that ends without a verdict, most likely because its process died. Whether
somebody had it in hand then, or it was only fetched ahead, decides whether it may be the cause. The
digit costs a claim nothing, because the same statement computes it. A message that is not leased
keeps its losses as a negative token, so that giving a message back undoes a claim in full.
"""

import secrets

# The number of losses that means: somebody had the message in hand when its last lease ended.
LOST_IN_HAND = 4
MOST_COUNTED = LOST_IN_HAND - 1
# A token is a multiple of 10 plus the losses. It is 5 more if somebody has the message in hand.
IN_HAND = 5
# Tokens of one claim are equal when they are divided by this.
SAME_CLAIM = 5
# The random part of a token that nobody can guess; 0 would mean that there is no lease.
RANDOM_BITS = 58
LEAST = 10


def new_token(*, fetched_ahead: bool = False) -> int:
    """Return a token without losses. A poll computes it on its own, which saves a call."""
    return secrets.randbits(RANDOM_BITS) * 10 + (LEAST if fetched_ahead else LEAST + IN_HAND)


def losses_of(token: int) -> int:
    """Return how many leases in a row a message had lost before the lease with this token.

    It counts up to 3, and is `LOST_IN_HAND` if somebody had it in hand the last time.
    """
    return token % IN_HAND


def only_fetched(token: int) -> bool:
    """Return whether nobody may have had the message in hand when its last lease ended."""
    return 0 < losses_of(token) < LOST_IN_HAND


def token_after(before: int, token: int) -> int:
    """Return the token of a lease, given what its message had for a token before."""
    if before <= 0:
        return token - before
    if before % 10 >= IN_HAND:
        return token + LOST_IN_HAND
    return token + min(before % 10 + 1, MOST_COUNTED)


def token_given_back(token: int) -> int:
    """Return what a message keeps that is given back."""
    return -losses_of(token)
