"""Requests and answers of linux/fuse.h, by their bytes."""

import os
import struct

import pytest

from chaoskit.wire.fuse import answers
from chaoskit.wire.fuse.answers import Attributes
from chaoskit.wire.fuse.requests import (
    REQUEST_BYTES_MAX,
    WRITE_BYTES_MAX,
    Changed,
    Opcode,
    Request,
    Written,
)

SHOWN = Attributes(7, 0o100644, 4097, 2, 10, 20, 3_000_000_004)


def request(opcode, body=b"", node=1):
    header = struct.pack("=IIQQIIIHH", 40 + len(body), opcode, 99, node, 1, 2, 3, 0, 0)
    return Request.read(memoryview(header + body))


def test_a_request_is_taken_apart():
    asked = request(Opcode.RENAME, struct.pack("=Q", 5) + b"old\0new\0", node=4)
    assert asked[:6] == (Opcode.RENAME, 99, 4, 1, 2, 3)
    assert (asked.number(), asked.names(8)) == (5, [b"old", b"new"])


@pytest.mark.parametrize(
    ("how", "flags", "late", "synced"),
    [(0, 0, False, False), (1, 0, True, False), (0, os.O_SYNC, False, True)],
)
def test_a_write_says_whether_it_is_late_and_whether_it_is_synced(
    how, flags, late, synced
):
    body = struct.pack("=QQIIQII", 0, 4096, 3, how, 0, flags, 0) + b"abc"
    assert Written.read(body) == (4096, b"abc", late, synced)


def test_a_change_of_attributes_leaves_alone_what_it_does_not_name():
    fields = (0, 12, 0, 0, 5, 0, 0, 6, 0, 0o600, 0, 10, 20, 0)
    pack = struct.Struct("=I4xQQQQQQIIIIIIII").pack
    assert Changed.read(pack(1 << 3, *fields)) == (12, None, None, None, None)
    assert Changed.read(pack(0b110111, *fields)) == (None, 0o600, 10, 20, 5 * 10**9 + 6)
    assert Changed.read(pack(1 << 5 | 1 << 8, *fields)).mtime == -1


def test_answers_have_the_sizes_that_the_kernel_insists_on():
    assert len(answers.entry(SHOWN)) == 128
    assert len(answers.attributes(SHOWN)) == 104
    assert len(answers.opened()) == 16
    assert len(answers.written(1)) == 8
    assert len(answers.space(1, 1)) == 80
    assert len(answers.welcome(request(Opcode.INIT, bytes(64)))) == 64


def test_an_answer_is_named_by_its_request_and_an_error_is_below_zero():
    assert b"".join(answers.reply(99, b"ab")) == struct.pack("=IiQ", 18, 0, 99) + b"ab"
    assert b"".join(answers.failure(99, 5)) == struct.pack("=IiQ", 16, -5, 99)


def test_nothing_is_to_be_kept_by_the_kernel():
    assert answers.attributes(SHOWN)[:12] == bytes(12)
    assert answers.entry(SHOWN)[16:40] == bytes(24)


def test_a_listing_ends_where_the_room_does_and_goes_on_there():
    names = [(b"%d" % n * n, n, 0o100000) for n in range(1, 20)]
    seen, room = [], 200
    while part := answers.listing(names[len(seen) :], room, len(seen)):
        assert len(part) <= room
        while part:
            ino, following, size, kind = struct.unpack_from("=QQII", part)
            seen.append((part[24 : 24 + size], ino, kind << 12))
            assert following == len(seen)
            part = part[(24 + size + 7) // 8 * 8 :]
    assert seen == names


@pytest.mark.parametrize("known", [0, 1 << 4 | 1 << 9])
def test_delayed_writes_and_locks_are_never_agreed_on(known):
    offer = struct.pack("=IIIII44x", 7, 40, 0, 0xFFFFFFFF, known)
    _, _, _, flags, _, _, size, _, _, _, more = struct.unpack_from(
        "=IIIIHHIIHHI", answers.welcome(request(Opcode.INIT, offer))
    )
    assert flags == 1 << 5 | 1 << 22 | 1 << 30
    assert more == known & 1 << 4
    assert size == WRITE_BYTES_MAX < REQUEST_BYTES_MAX
