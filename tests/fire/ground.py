"""The place where the rounds on a store happen, one after the other."""

from contextlib import AbstractContextManager

from tests.fire.disks import Disk
from tests.fire.proxy import Proxy


class Ground:
    """A place for rounds: an address for the workers, and the parts that faults can break."""

    # Whether a reply can be lost between the store and a worker, which then tries again.
    has_network = False
    # Whether several processes can reach the store.
    is_shared = True
    # Whether queues may have a history.
    keeps_history = True

    def fresh_url(self) -> str:
        """Return the URL of an empty store."""
        raise NotImplementedError

    @property
    def disk(self) -> Disk | None:
        """The disk of the store, if it can be filled."""
        return None

    @property
    def proxy(self) -> Proxy:
        """The network to the store."""
        raise NotImplementedError

    @property
    def alerts(self) -> "Ground":
        """The Redis through which processes wake each other, if the store has one apart."""
        raise NotImplementedError

    def flush(self) -> None:
        """Delete everything that the server has."""
        raise NotImplementedError

    def crash(self) -> None:
        """End the server without a warning, and start it again."""
        raise NotImplementedError

    def revive(self) -> None:
        """Make sure that a server that gave up runs again."""

    def hold(self) -> AbstractContextManager[object]:
        """Let another program's transaction hold what the workers need."""
        raise NotImplementedError
