"""The receiving process of the latency workload."""

import json
import sys

from bench.contenders import contender


def main() -> None:
    """Say when ready, then print the ages of all messages as JSON."""
    name, url, messages = sys.argv[1:]
    ages = contender(name).receive(url, int(messages), lambda: print("ready", flush=True))
    print(json.dumps(ages), flush=True)


if __name__ == "__main__":
    main()
