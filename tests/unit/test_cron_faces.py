"""Both faces of the crons have the same names and the same arguments."""

import inspect

import pytest

from duequeue import AsyncCron, AsyncCronHandle, Cron, CronHandle


def arguments(owner: type) -> dict[str, list[tuple[str, object, object]]]:
    methods = inspect.getmembers(owner, inspect.isfunction)
    return {
        name: [
            (each.name, each.kind, each.default)
            for each in inspect.signature(method).parameters.values()
        ]
        for name, method in methods
        if not name.startswith("_")
    }


@pytest.mark.parametrize(
    ("blocking", "awaiting"), [(Cron, AsyncCron), (CronHandle, AsyncCronHandle)]
)
def test_the_faces_agree(blocking: type, awaiting: type) -> None:
    assert arguments(blocking) == arguments(awaiting)
    assert len(arguments(blocking)) > 1
    for name in arguments(awaiting):
        assert inspect.iscoroutinefunction(getattr(awaiting, name))
