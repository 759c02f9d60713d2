"""A mark that a life's processes inherit and cannot see by looking at themselves.

A daemon of an agent may leave its group and its session, lose its parents, close its
files and clear its environment, and must still be known as part of its life; and the
contract allows no variable that tells one life from another. What stays through every
fork and exec is a resource limit, and one of them, RLIMIT_RSS, has had no effect since
Linux 2.4.30 (getrlimit(2)). So its soft value, far above any real memory, is the mark:

    bit 62    set, so that no size that somebody meant is taken for a mark
    30 to 61  the CRC-32 of the campaign's id
    0 to 29   the ordinal of the life in this worker
"""

import itertools
import os
import resource
import zlib

CAMPAIGN_VARIABLE = "CHAOSKIT_CAMPAIGN"
"""The environment variable that holds the campaign's id, in all that it starts."""

_ORDINAL_BITS = 30
_ordinals = itertools.count(1)


def fresh_mark(campaign: str) -> int:
    """A mark that no other life of this worker has had.

    Nor does this worker carry it, which may itself be a life of another.
    """
    own = mark_of(os.getpid())
    marks = (_mark(campaign, ordinal) for ordinal in _ordinals)
    return next(mark for mark in marks if mark != own)


def mark_of(pid: int) -> int | None:
    """The mark a process carries, or its own limit; None where we may not look."""
    try:
        return resource.prlimit(pid, resource.RLIMIT_RSS)[0]
    except (ProcessLookupError, PermissionError):
        return None


def is_of(mark: int | None, campaign: str) -> bool:
    """Whether a mark was made for this campaign."""
    return mark is not None and mark >> _ORDINAL_BITS == _campaign_part(campaign)


def _mark(campaign: str, ordinal: int) -> int:
    return _campaign_part(campaign) << _ORDINAL_BITS | ordinal % (1 << _ORDINAL_BITS)


def _campaign_part(campaign: str) -> int:
    return 1 << 32 | zlib.crc32(campaign.encode())
