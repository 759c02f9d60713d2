"""One port for a campaign, and a listening socket of its own for each life."""

import asyncio
import socket

import pytest

from chaoskit.world.listener import LifePort, Listener


@pytest.fixture
def listener():
    made = Listener()
    yield made
    made.close()


def _connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def test_the_port_is_on_the_loopback_interface_and_stays_the_same(listener):
    first = listener.renew().getsockname()
    second = listener.renew().getsockname()
    assert first == second == ("127.0.0.1", listener.port)


def test_a_connection_nobody_accepted_is_reset_and_not_handed_on(listener):
    listener.renew()
    with _connect(listener.port) as orphan:
        fresh = listener.renew()
        fresh.setblocking(False)
        with pytest.raises(ConnectionResetError):
            orphan.recv(1)
        with pytest.raises(BlockingIOError):
            fresh.accept()


def test_between_lives_the_port_refuses_and_cannot_be_taken(listener):
    listener.renew()
    listener.drop()
    with pytest.raises(ConnectionRefusedError):
        _connect(listener.port)
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", listener.port))


def test_the_port_can_be_renewed_while_old_connections_are_alive(listener):
    old = listener.renew()
    with _connect(listener.port) as client:
        server, _ = old.accept()
        with server:
            listener.renew()
            server.send(b"x")
            assert client.recv(1) == b"x"


def test_two_listeners_have_two_ports():
    one, other = Listener(), Listener()
    try:
        assert one.port != other.port
    finally:
        one.close()
        other.close()


class Echo(asyncio.Protocol):
    """Answers with its life's name."""

    def __init__(self, name):
        self.name = name

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.transport.write(self.name)


class Told:
    """Knows whose a connection is by what the test says of the client's address."""

    def __init__(self):
        self.clients = {}
        self.asked = 0

    def connection(self, client, server):
        self.asked += 1
        return self.clients.get(client)

    def process(self, pid):
        return None


async def _open(port, life, whose):
    await port.open(life, lambda: Echo(str(life).encode()), whose)


async def _connect_as(port, life, whose):
    """A client that is a life's, and what it hears."""
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    sock.setblocking(False)
    whose.clients[sock.getsockname()] = life
    loop = asyncio.get_running_loop()
    await loop.sock_connect(sock, ("127.0.0.1", port.port))
    return sock


async def _hear(sock):
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(sock, b"?")
    return await asyncio.wait_for(loop.sock_recv(sock, 10), 30)


async def test_while_one_life_is_open_nobody_is_asked_whose_a_connection_is():
    port, whose = LifePort(), Told()
    for life in (0, 1):
        await _open(port, life, whose)
        with await _connect_as(port, life, whose) as client:
            assert await _hear(client) == str(life).encode()
        port.close(life)
    assert whose.asked == 0
    port.stop()


async def test_two_open_lives_are_told_apart_and_a_stranger_is_reset():
    port, whose = LifePort(), Told()
    await _open(port, 0, whose)
    with await _connect_as(port, 0, whose) as early:
        await _open(port, 1, whose)
        assert await _hear(early) == b"0"
    for life in (0, 1, 0):
        with await _connect_as(port, life, whose) as client:
            assert await _hear(client) == str(life).encode()
    for nobody in (None, 7):
        stranger = await _connect_as(port, nobody, whose)
        with stranger, pytest.raises(ConnectionResetError):
            await _hear(stranger)
    port.stop()


async def test_a_connection_of_a_life_that_ended_beside_another_is_nobodys():
    """It waited to be accepted; the life that is still open must not be given it."""
    port, whose = LifePort(), Told()
    await _open(port, 0, whose)
    await _open(port, 1, whose)
    with socket.create_connection(("127.0.0.1", port.port), 5) as late:
        late.sendall(b"?")
        port.close(1)  # before the loop came to accept it
        late.setblocking(False)
        with pytest.raises(ConnectionResetError):
            await _hear(late)
    with await _connect_as(port, 0, whose) as client:
        assert await _hear(client) == b"0"
    port.close(0)
    with pytest.raises(ConnectionRefusedError):
        _connect(port.port)
    port.stop()


async def test_without_anybody_to_ask_new_connections_are_the_newest_lifes():
    port, whose = LifePort(), Told()
    await _open(port, 0, None)
    with await _connect_as(port, 0, whose) as old:
        await _open(port, 1, None)
        port.close(0)
        with await _connect_as(port, 0, whose) as new:
            assert await _hear(new) == b"1"
        assert await _hear(old) == b"0"
    port.stop()
