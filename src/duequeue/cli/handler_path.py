"""Find a handler by its path, which has the form `module:function`."""

import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

from duequeue.consumer.bound_handler import BoundHandler


def load(place: str) -> Callable[..., Any]:
    """Import a handler; its module may also be in the current folder."""
    module_name, colon, path = place.partition(":")
    if not (module_name and colon and path):
        raise ValueError(f"handler must be given as module:function, not {place!r}")
    if os.getcwd() not in sys.path:  # noqa: PTH109 - sys.path holds strings
        sys.path.insert(0, os.getcwd())  # noqa: PTH109 - likewise
    found: Any = _imported(module_name)
    for name in path.split("."):
        if not hasattr(found, name):
            raise ValueError(f"module {module_name!r} has no {path!r}")
        found = getattr(found, name)
    if not callable(found):
        raise ValueError(f"{place!r} is not a function, but of type {type(found).__name__}")  # noqa: TRY004 - to the user it is a wrong argument
    # Other decorators stay, because the worker must call them.
    while isinstance(found, BoundHandler):
        found = found.function
    function: Callable[..., Any] = found
    return function


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether a handler must be awaited."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - how an object is called, not whether
    )


def _imported(name: str) -> object:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise ValueError(f"there is no module {name!r}") from error
        _show(error)
        raise ValueError(f"module {name!r} cannot be imported") from error
    except Exception as error:
        _show(error)
        raise ValueError(f"module {name!r} cannot be imported") from error


def _show(error: Exception) -> None:
    """Print the traceback, which shows the mistake in the user's own code."""
    traceback.print_exception(error)
