"""What the kernel asks of a file system in user space, and how it is answered.

The messages are those of ``linux/fuse.h``, version 7.31 (Linux 5.4), in the machine's
byte order: a header with the operation and the inode, then a body. One read of the
device gives one request whole; one write answers it. There are no sockets in here.

Two things are left to the kernel by never being offered: locks, which it keeps itself
for all who use the same mount, and delayed writes, which would hide and merge the
writes of an agent. Files are opened past its page cache (`opened`), since it cuts a
write that goes through it, here and there, by what happens to be in it. What is mapped
goes through it all the same and is written back late, and then it says so
(`Written.is_late`).
"""
