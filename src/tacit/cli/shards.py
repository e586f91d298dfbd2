"""``tacit shards``: the codes of tables that lie in a folder."""

from __future__ import annotations

from tacit.cli.options import Folder


def clear(folder: Folder, /) -> None:
    """Remove the codes of all tables from a folder.

    They were written there by --shards, and are data in the clear.  Tables that are
    open go on as they are; shards that are being written at this moment stay.  The
    next opening with --shards writes them anew.

    For example:

        tacit shards clear /secure/shards

    Parameters
    ----------
    folder
        The folder that --shards named.

    """
    from tacit.tables.shard_sets import clear as cleared

    removed = cleared(folder)
    print(f"{removed} removed" if removed else "there was nothing to remove")
