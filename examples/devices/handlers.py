"""Two handlers, which `duequeue worker examples.devices.handlers` serves in one process.

At 07:00 in the zone of a fleet, its cron puts a message into the queue `mornings`. `plan` handles
it and offers an instruction for each device, and `push` sends the instructions. Any number of
workers may run, and each fleet is still woken once a day.
"""

import os
from dataclasses import dataclass
from datetime import timedelta

import httpx

from duequeue import Daily, Delivery, Message, Queue

FLEETS = {
    "lima": ("America/Lima", ["lamp-1", "lamp-2", "lamp-3"]),
    "berlin": ("Europe/Berlin", ["heater-1", "heater-2"]),
}
GATEWAY = os.environ.get("DEVICE_GATEWAY", "http://127.0.0.1:8080")
URL = os.environ.get("DUEQUEUE_URL", "sqlite:///devices.db")


@dataclass
class Instruction:
    """What a device has to do."""

    device: str
    command: str


class UnknownDevice(Exception):
    """The gateway does not know the device, and will not know it at the next attempt either."""


mornings = Queue.open(URL, "mornings", codec=str)
instructions = Queue.open(URL, "instructions", codec=Instruction)

for fleet, (zone, _) in FLEETS.items():
    mornings.cron.install_daily_schedule(f"wake/{fleet}", Daily(["07:00"], zone), fleet)


@mornings.handler(concurrency=1)
def plan(delivery: Delivery[str]) -> None:
    """Offer an instruction for each device of a fleet; it expires after an hour."""
    _, devices = FLEETS[delivery.payload]
    instructions.offer_batch(
        Message(
            f"{delivery.key}/{device}",
            Instruction(device, "wake up"),
            expires=timedelta(hours=1),
        )
        for device in devices
    )


@instructions.handler(concurrency=20, timeout=timedelta(seconds=10), bury_on=UnknownDevice)
def push(delivery: Delivery[Instruction]) -> None:
    """Post the instruction to the gateway; if that fails, the consumer tries again later."""
    instruction = delivery.payload
    url = f"{GATEWAY}/devices/{instruction.device}"
    answer = httpx.post(url, json={"command": instruction.command}, timeout=5)
    if answer.status_code == httpx.codes.NOT_FOUND:
        raise UnknownDevice(instruction.device)
    answer.raise_for_status()
