"""Whole numbers on the command line."""

import argparse


def positive(text: str) -> int:
    """Read a whole number above zero."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return number


def counted(number: int, noun: str) -> str:
    """Write a number with its noun, as in "1 message" and "2,000 messages"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
