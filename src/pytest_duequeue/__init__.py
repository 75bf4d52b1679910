"""Found by pytest itself, so that `pytest --pyargs duequeue.contract` knows its own options.

Any other run of pytest is left as it is, and does not import DueQueue.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_load_initial_conftests(early_config: "pytest.Config", args: list[str]) -> None:
    """Load the plugin of the contract if the command line names the contract."""
    if any(argument.startswith("duequeue.contract") for argument in args):
        early_config.pluginmanager.import_plugin("duequeue.contract.plugin")
