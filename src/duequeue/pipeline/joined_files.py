"""Which files of an archive count while small ones are joined into few.

    _joining/day=2026-03-01/queue=orders/part-….parquet    being written; discarded after a crash
    _joining/manifest.json                                 the new files are complete

The new files are then moved into place, the old ones are deleted, and the manifest comes last. If
a run is interrupted in between, the manifest tells readers which files to leave out.
"""

import msgspec

from duequeue.pipeline.folder import Folder

JOINING = "_joining"
MANIFEST = f"{JOINING}/manifest.json"


class Join(msgspec.Struct, frozen=True):
    """The names of the new files, and of the old ones that they replace."""

    adds: list[str]
    replaces: list[str]


def interrupted_join(folder: Folder) -> Join | None:
    """Return the join that a run has not finished, if there is one."""
    if not folder.has(MANIFEST):
        return None
    return msgspec.json.decode(folder.read(MANIFEST), type=Join)


def left_out(folder: Folder) -> set[str]:
    """Return the files that would be read twice.

    The old files are deleted only after all new ones are in place. Until then, the old ones count.
    """
    join = interrupted_join(folder)
    if join is None:
        return set()
    in_place = all(folder.has(each) for each in join.adds)
    return set(join.replaces if in_place else join.adds)
