"""The model of a disk, beside a model of a model: what is synced stays, and no more."""

import errno
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.wire.fuse.requests import ROOT
from chaoskit.world.files.disk import Disk
from chaoskit.world.files.inode import Maker
from chaoskit.world.files.powerloss import Loss, copy, is_all_safe, lose_power
from chaoskit.world.files.room import FILE_BYTES_MAX

FILE, FOLDER = stat.S_IFREG | 0o644, stat.S_IFDIR | 0o755
US = Maker()


def make(disk, path, content=b"", mode=FILE):
    *above, name = path.split("/")
    folder = ROOT
    for each in above:
        folder = disk.find(folder, each.encode()).ino
    made = disk.make(folder, name.encode(), mode, US)
    if content:
        disk.write(made.ino, 0, content)
    return made.ino


def seen(disk):
    return {
        path: None if inode.is_folder else bytes(inode.content)
        for path, inode in disk.files()
    }


def after(disk, loss=Loss.ALL):
    rest = copy(disk)
    lose_power(rest, loss)
    assert is_all_safe(rest)
    return seen(rest)


def test_data_and_name_are_synced_apart():
    disk = Disk()
    ino = make(disk, "a", b"abc")
    assert after(disk) == {}
    disk.sync(ino)
    assert after(disk) == {}
    disk.sync(ROOT)
    assert after(disk) == {"a": b"abc"}
    assert is_all_safe(disk)
    disk.write(ino, 1, b"x")
    disk.truncate(ino, 9)
    assert seen(disk) == {"a": b"axc" + bytes(6)}
    assert after(disk) == {"a": b"abc"}


def test_a_name_without_its_data_is_an_empty_file():
    """The classic: written, renamed into its place, never synced."""
    disk = Disk()
    disk.sync(make(disk, "state", b"old"))
    disk.sync(ROOT)
    make(disk, "new", b"new")
    disk.rename((ROOT, b"new"), (ROOT, b"state"))
    assert after(disk) == {"state": b"old"}
    assert after(disk, Loss.DATA) == {"state": b""}
    assert after(disk, Loss.NAMES) == {"state": b"old"}
    disk.sync(ROOT)
    assert after(disk) == {"state": b""}


def test_a_file_that_was_removed_comes_back_until_its_folder_is_synced():
    disk = Disk()
    disk.sync(make(disk, "journal", b"hot"))
    disk.sync(ROOT)
    disk.unlink(ROOT, b"journal")
    assert (seen(disk), after(disk)) == ({}, {"journal": b"hot"})
    disk.sync(ROOT)
    assert after(disk) == {}


@pytest.mark.parametrize("synced", ["one", "two"])
def test_a_rename_between_folders_is_safe_as_one_with_all_before_it(synced):
    disk = Disk()
    one, two = make(disk, "one", mode=FOLDER), make(disk, "two", mode=FOLDER)
    disk.sync(ROOT)
    disk.sync(make(disk, "one/a", b"abc"))
    make(disk, "two/other")
    disk.rename((one, b"a"), (two, b"b"))
    disk.sync({"one": one, "two": two}[synced])
    expected = {"one": None, "two": None, "two/other": b"", "two/b": b"abc"}
    assert after(disk) == expected


def test_what_is_in_a_folder_that_is_lost_is_lost():
    disk = Disk()
    folder = make(disk, "d", mode=FOLDER)
    disk.sync(make(disk, "d/a", b"abc"))
    disk.sync(folder)
    assert after(disk) == {}
    disk.sync(ROOT)
    assert after(disk) == {"d": None, "d/a": b"abc"}


def test_some_is_the_older_half_in_the_order_of_the_changes():
    disk = Disk()
    disk.sync(ROOT)
    ino = make(disk, "a")
    for offset in range(5):
        disk.write(ino, offset, b"x")
    assert after(disk, Loss.SOME) == {"a": b"xx"}


@pytest.mark.parametrize(
    ("do", "number"),
    [
        (lambda d: d.find(ROOT, b"none"), errno.ENOENT),
        (lambda d: d.make(ROOT, b"a", FILE, US), errno.EEXIST),
        (lambda d: d.make(ROOT, b"x" * 256, FILE, US), errno.ENAMETOOLONG),
        (lambda d: d.unlink(ROOT, b"d"), errno.EISDIR),
        (lambda d: d.rmdir(ROOT, b"a"), errno.ENOTDIR),
        (lambda d: d.rmdir(ROOT, b"d"), errno.ENOTEMPTY),
        (lambda d: d.rename((ROOT, b"a"), (ROOT, b"d")), errno.EISDIR),
        (lambda d: d.rename((ROOT, b"d"), (ROOT, b"a")), errno.ENOTDIR),
        (lambda d: d.link(d.find(ROOT, b"d").ino, ROOT, b"e"), errno.EPERM),
        (lambda d: d[99], errno.ESTALE),
    ],
)
def test_what_cannot_be_done_says_why_and_changes_nothing(do, number):
    disk = Disk()
    make(disk, "a", b"abc")
    make(disk, "d", mode=FOLDER)
    make(disk, "d/below")
    before = seen(disk)
    with pytest.raises(OSError, match=rf"\[Errno {number}\]"):
        do(disk)
    assert seen(disk) == before


def test_an_inode_knows_where_it_is():
    disk = Disk()
    make(disk, "d", mode=FOLDER)
    ino = make(disk, "d/a")
    assert (disk.path(ROOT), disk.path(ino)) == (".", "d/a")
    disk.link(ino, ROOT, b"b")
    disk.unlink(disk.find(ROOT, b"d").ino, b"a")
    assert disk.path(ino) == "b"
    disk.rename((ROOT, b"b"), (ROOT, b"c"))
    disk.unlink(ROOT, b"c")
    assert disk.path(ino) == "c", "the last name it had"


names = st.sampled_from([b"a", b"b", b"c"])
actions = st.one_of(
    st.tuples(st.just("write"), names, st.integers(0, 6), st.binary(max_size=5)),
    st.tuples(st.just("truncate"), names, st.integers(0, 6)),
    st.tuples(st.just("rename"), names, names),
    st.tuples(st.just("link"), names, names),
    st.tuples(st.just("unlink"), names),
    st.tuples(st.just("sync"), names),
    st.tuples(st.just("sync all")),
)


class Plain:
    """One folder as two dictionaries of names, and two of contents."""

    def __init__(self):
        self.names, self.safe_names = {}, {}
        self.content, self.safe_content = {}, {}

    def write(self, name, offset, data):
        key = self.names.setdefault(name, len(self.content))
        old = self.content.get(key, b"")
        self.safe_content.setdefault(key, b"")
        grown = old.ljust(offset, b"\0")
        self.content[key] = grown[:offset] + data + grown[offset + len(data) :]

    def truncate(self, name, size):
        key = self.names[name]
        self.content[key] = self.content[key].ljust(size, b"\0")[:size]

    def seen(self):
        return {n.decode(): self.content[k] for n, k in self.names.items()}

    def after(self):
        return {n.decode(): self.safe_content[k] for n, k in self.safe_names.items()}


@given(st.lists(actions, max_size=30))
def test_a_random_run_agrees_with_dictionaries(steps):
    disk, plain = Disk(), Plain()
    for op, *rest in steps:
        exists = bool(rest) and rest[0] in plain.names
        if op == "sync all":
            disk.sync(ROOT)
            plain.safe_names = dict(plain.names)
        elif op == "write":
            name, offset, data = rest
            ino = make(disk, name.decode()) if not exists else None
            disk.write(ino or disk.find(ROOT, name).ino, offset, data)
            plain.write(name, offset, data)
        elif exists:
            _both(disk, plain, op, *rest)
        assert seen(disk) == dict(sorted(plain.seen().items()))
        assert after(disk) == plain.after()
    links = [plain.names[name] for name in plain.names]
    assert [disk.find(ROOT, n).nlink for n in plain.names] == [
        links.count(plain.names[n]) for n in plain.names
    ]


def _both(disk, plain, op, name, *rest):
    ino, key = disk.find(ROOT, name).ino, plain.names[name]
    if op == "truncate":
        disk.truncate(ino, *rest)
        plain.truncate(name, *rest)
    elif op == "sync":
        disk.sync(ino)
        plain.safe_content[key] = plain.content[key]
    elif op == "unlink":
        disk.unlink(ROOT, name)
        del plain.names[name]
    elif op == "rename":
        disk.rename((ROOT, name), (ROOT, rest[0]))
        if key != plain.names.get(rest[0]):
            plain.names[rest[0]] = plain.names.pop(name)
    elif rest[0] not in plain.names:
        disk.link(ino, ROOT, rest[0])
        plain.names[rest[0]] = key


def test_what_does_not_fit_leaves_the_disk_as_it_was():
    disk = Disk()
    ino = make(disk, "a", b"abc")
    disk.sync(ino)
    disk.sync(ROOT)
    for change in (
        lambda: disk.write(ino, FILE_BYTES_MAX, b"x"),
        lambda: disk.truncate(ino, FILE_BYTES_MAX + 1),
    ):
        with pytest.raises(OSError, match=rf"Errno {errno.EFBIG}\b"):
            change()
    assert is_all_safe(disk)
    assert seen(disk) == {"a": b"abc"}
