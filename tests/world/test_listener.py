"""One port for a campaign, and a listening socket of its own for each life."""

import socket

import pytest

from chaoskit.world.listener import Listener


@pytest.fixture
def listener():
    made = Listener()
    yield made
    made.close()


def _connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=5)


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
