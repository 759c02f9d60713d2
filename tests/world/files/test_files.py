"""The folder is a folder like any other, and each change in it is a crossing."""

import asyncio
import os
import subprocess
import sys

import pytest

from chaoskit.world.files import room

EVERYTHING = """
import shutil, stat, fcntl, errno
os.umask(0o022)
def refused(do, *args, **more):
    try:
        do(*args, **more)
    except OSError as error:
        print(errno.errorcode[error.errno])
def write(path, data, mode="xb"):
    with open(path, mode, buffering=0) as file:
        return file.write(data)
write("a", b"hello")
write("a", b", world", "ab")
print(open("a").read(), os.stat("a").st_size, oct(os.stat("a").st_mode))
refused(write, "a", b"")
os.mkdir("folder")
os.rename("a", "folder/b")
refused(os.stat, "a")
refused(os.rmdir, "folder")
refused(os.rename, "folder/b", "nowhere/b")
refused(open, "x" * 256, "x")
os.link("folder/b", "c")
print(os.stat("c").st_nlink, os.path.samefile("c", "folder/b"))
os.symlink("folder/b", "l")
print(os.readlink("l"), open("l").read())
with open("c", "r+b", buffering=0) as file:
    file.seek(20)
    file.write(b"!")
    os.truncate("c", 21)
    os.pwrite(file.fileno(), b"H", 0)
    print(file.seek(0), file.read(), os.fstat(file.fileno()).st_size)
    os.unlink("c")
    os.unlink("folder/b")
    file.write(b"still there")
    print(os.pread(file.fileno(), 50, 0), os.fstat(file.fileno()).st_nlink)
os.makedirs("deep/er")
for number in range(200):
    write(f"deep/er/{number:03}", str(number).encode())
print(len(os.listdir("deep/er")), sorted(os.listdir("deep/er"))[::50])
shutil.rmtree("deep")
print(sorted(os.listdir(".")))
big = os.urandom(3_000_000)
print(write("big", big), open("big", "rb").read() == big)
shutil.copyfile("big", "copy")
print(open("copy", "rb").read() == big)
with open("copy", "w"):
    pass
print(os.stat("copy").st_size)
os.chmod("copy", 0o600)
os.utime("copy", (1, 2))
print(oct(os.stat("copy").st_mode), os.stat("copy").st_mtime)
with open("lock", "w") as one, open("lock", "w") as two:
    fcntl.flock(one, fcntl.LOCK_EX)
    refused(fcntl.flock, two, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.lockf(one, fcntl.LOCK_EX)
    if not (child := os.fork()):
        refused(fcntl.lockf, two, fcntl.LOCK_EX | fcntl.LOCK_NB)
        import sys; sys.stdout.flush(); os._exit(0)
    os.waitpid(child, 0)
print(sorted((e.name, e.is_dir(), e.is_symlink()) for e in os.scandir(".")))
"""


async def test_a_program_sees_what_it_sees_in_a_plain_folder(on_disk, tmp_path):
    plain = tmp_path / "plain"
    plain.mkdir()
    code = f"import os\nos.chdir(os.environ['CHAOSKIT_STATE_DIR'])\n{EVERYTHING}"
    expected = await asyncio.to_thread(
        subprocess.check_output,
        (sys.executable, "-I", "-S", "-c", code),
        env={**os.environ, "CHAOSKIT_STATE_DIR": str(plain)},
        text=True,
    )
    async with on_disk() as bench:
        assert await bench.run(EVERYTHING) == expected


@pytest.mark.parametrize(
    ("code", "crossed"),
    [
        ("open('a', 'x').close()", ["create[a]"]),
        ("os.mknod('a')", ["create[a]"]),
        ("open('old', 'a').write('x')", ["write[old]"]),
        ("open('old', 'w').close()", ["truncate[old]"]),
        ("os.truncate('old', 9)", ["truncate[old]"]),
        ("os.fsync(os.open('old', os.O_RDONLY))", ["fsync[old]"]),
        ("os.fdatasync(os.open('old', os.O_RDONLY))", ["fsync[old]"]),
        ("os.fsync(os.open('.', os.O_RDONLY))", ["fsync[.]"]),
        ("os.fsync(os.open('sub', os.O_RDONLY))", ["fsync[sub]"]),
        ("os.rename('old', 'sub/new')", ["rename[sub/new]"]),
        ("os.replace('old', 'other')", ["rename[other]"]),
        ("os.link('old', 'new')", ["link[new]"]),
        ("os.symlink('old', 'new')", ["symlink[new]"]),
        ("os.unlink('sub/below')", ["unlink[sub/below]"]),
        ("os.mkdir('sub/new')", ["mkdir[sub/new]"]),
        ("os.rmdir('empty')", ["rmdir[empty]"]),
        ("os.chmod('old', 0o600)", ["chmod[old]"]),
        ("os.chmod('old', os.stat('old').st_mode)", []),
        ("os.utime('old')", []),
        ("open('old').read(), os.listdir('sub'), os.stat('sub')", []),
        ("open('agent.db-shm', 'w').write('x')", []),
        ("os.mkdir(b'\\xff')", ["mkdir[\\xff]"]),
    ],
)
async def test_what_changes_something_is_a_crossing(on_disk, code, crossed):
    prepared = (
        "os.umask(0o022)\nfor name in ('sub', 'empty'): os.mkdir(name)\n"
        "for name in ('old', 'other', 'sub/below'): open(name, 'x').close()\n"
    )
    async with on_disk() as bench:
        await bench.run(prepared)
        before = len(bench.crossed())
        await bench.run(code)
        assert bench.crossed()[before:] == [
            f"{each}#1:{edge}" for each in crossed for edge in ("before", "after")
        ]


async def test_a_write_is_one_crossing_whatever_is_cached_and_wherever_it_lies(on_disk):
    """The kernel's page cache would cut a write in two at the end of a page."""
    code = """
fd = os.open("a", os.O_RDWR | os.O_CREAT)
for offset in (0, 10, 4090, 100_000):
    os.pwrite(fd, b"x" * 5000, offset)
    os.pread(fd, 100, offset)
os.writev(fd, [b"y" * 3000] * 5)
os.write(fd, bytes(1_000_000))
"""
    async with on_disk() as bench:
        await bench.run(code)
        pieces = [e.pieces for e in bench.gate.record.events if "write" in e.address]
        assert pieces[::2] == [5000] * 4 + [15000, 1_000_000]


async def test_a_write_to_mapped_memory_crosses_at_its_sync_only(on_disk):
    code = """
import mmap
with open("a", "xb+", buffering=0) as file:
    file.write(bytes(5000))
    with mmap.mmap(file.fileno(), 5000) as memory:
        memory[1:4] = b"abc"
        memory.flush()
        memory[1:4] = b"def"
    print(file.seek(0), file.read(5))
"""
    async with on_disk() as bench:
        assert await bench.run(code) == "0 b'\\x00def\\x00'\n"
        assert bench.crossed()[::2] == [
            f"{each}#1:before" for each in ("create[a]", "write[a]", "fsync[a]")
        ]


async def test_a_write_through_is_safe_at_once(on_disk):
    code = (
        "fd = os.open('a', os.O_WRONLY | os.O_CREAT | os.O_DSYNC)\nos.write(fd, b'x')"
    )
    async with on_disk() as bench:
        await bench.run(code + "\nos.fsync(os.open('.', os.O_RDONLY))")
        assert await bench.content("unsynced") == {}
        assert await bench.content() == {"a": "x"}


async def test_each_trial_begins_with_an_empty_folder_at_the_same_place(on_disk):
    where = "print(os.getcwd(), os.listdir())\nopen('a', 'x').close()"
    async with on_disk() as bench:
        first = await bench.run(where)
        assert await bench.run("print(os.listdir())") == "['a']\n"
        await bench.trial()
        assert await bench.run(where) == first
        assert first == f"{bench.files.state_folder} []\n"


async def test_the_same_work_crosses_in_the_same_order_each_time(on_disk, request):
    """Threads aside: those order their own writes or nobody does."""
    times = 100 if request.config.getoption("full") else 5
    runs = set()
    async with on_disk() as bench:
        for _ in range(times):
            await bench.trial()
            await bench.run(EVERYTHING.replace("200", "20"))
            runs.add(tuple(bench.crossed()))
    (only,) = runs
    assert len(only) > 100


async def test_what_does_not_fit_is_refused_and_is_no_change(on_disk):
    """A file made of a hole would take all of our memory else."""
    code = """
import errno
f = os.open('f', os.O_RDWR | os.O_CREAT)
def refused(act, *args):
    try:
        act(*args)
    except OSError as error:
        print(errno.errorcode[error.errno], os.fstat(f).st_size)
refused(os.pwrite, f, b'x', 10**12)
refused(os.ftruncate, f, 2**62)
refused(os.ftruncate, f, (256 << 20) + 1)
os.pwrite(f, b'abc', 0)
"""
    async with on_disk() as bench:
        assert await bench.run(code) == "EFBIG 0\n" * 3
        assert await bench.content() == {"f": "abc"}
        crossed = bench.crossed()
        assert not [each for each in crossed if "truncate" in each]
        assert len([each for each in crossed if "write" in each]) == 2, "its edges"


async def test_a_full_disk_has_room_again_for_what_was_deleted(on_disk, monkeypatch):
    monkeypatch.setattr(room, "DISK_BYTES_MAX", 1000)
    code = """
import errno
def put(name, size):
    with open(name, 'wb', buffering=0) as file:
        try:
            file.write(bytes(size))
        except OSError as error:
            print(name, errno.errorcode[error.errno])
put('a', 600)
put('b', 401)
put('c', 400)
os.unlink('a')
put('d', 600)
"""
    async with on_disk() as bench:
        assert await bench.run(code) == "b ENOSPC\n"
        shown = await bench.content()
        sizes = {path: len(text) for path, text in shown.items()}
        assert sizes == {"b": 0, "c": 400, "d": 600}
