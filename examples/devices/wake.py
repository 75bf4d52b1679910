"""Wake a fleet now instead of at 07:00: `python -m examples.devices.wake lima`."""

import sys

from examples.devices.handlers import FLEETS, instructions, mornings


def main() -> None:
    """Put one extra morning of the fleet into the queue, for the worker."""
    if len(sys.argv) != 2 or sys.argv[1] not in FLEETS:  # noqa: PLR2004 - the program and a fleet
        sys.exit(f"Name one of these fleets: {', '.join(FLEETS)}.")
    with mornings, instructions:
        mornings.cron.run_now(f"wake/{sys.argv[1]}")
    print(f"It is morning in {sys.argv[1]}.")


if __name__ == "__main__":
    main()
