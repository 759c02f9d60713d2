"""Recorded traffic of the official clients, sent again however it is cut."""

import asyncio
import http.client
import io
import json
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from chaoskit.model.scenario import Scenario
from chaoskit.wire.sse import Reader, event
from chaoskit.world.llm import Llm
from chaoskit.world.llm.key import CANARY

RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.json"))
EACH = pytest.mark.parametrize("recording", RECORDED, ids=lambda path: path.stem)
NOT_OURS = {"date", "server"}
"""Headers that the HTTP library writes, as of its version and the time."""


def _exchanges(recording):
    """What was sent, and what came back."""
    for each in json.loads(recording.read_text())["exchanges"]:
        sent = each["sent"].replace("{canary}", CANARY)
        yield sent.encode(), _read(_Kept(each["got"].encode()))


class _Kept:
    """A socket that gives what was recorded."""

    def __init__(self, got):
        self._got = got

    def makefile(self, mode):
        return io.BytesIO(self._got)


def _read(connection):
    """A reply: status, headers and body."""
    reply = http.client.HTTPResponse(connection)
    reply.begin()
    headers = [(k, v) for k, v in reply.getheaders() if k.lower() not in NOT_OURS]
    return reply.status, headers, reply.read()


def _replayed(url, sent, *, by_bytes):
    at = urlsplit(url)
    with socket.create_connection((at.hostname, at.port), timeout=30) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        size = 1 if by_bytes else len(sent)
        for begin in range(0, len(sent), size):
            client.sendall(sent[begin : begin + size])
        return _read(client)


def test_there_are_recordings_of_each_way_to_ask():
    ways = ["chat", "messages", "responses"]
    names = [name for way in ways for name in (way, f"{way}_streamed")]
    assert [path.stem for path in RECORDED] == names


@pytest.mark.parametrize("by_bytes", [False, True])
@EACH
async def test_recorded_requests_get_the_recorded_replies(
    serve, make_gate, recording, by_bytes
):
    """By the byte and whole; the official client has read these replies."""
    scenario = Scenario.model_validate(json.loads(recording.read_text())["scenario"])
    async with serve(Llm(), make_gate(), scenario) as env:
        for sent, got in _exchanges(recording):
            again = await asyncio.to_thread(
                _replayed, env["OPENAI_BASE_URL"], sent, by_bytes=by_bytes
            )
            assert again == got


@pytest.mark.parametrize(
    "recording",
    [path for path in RECORDED if "stream" in path.stem],
    ids=lambda path: path.stem,
)
def test_recorded_streams_are_read_alike_however_they_are_cut(recording):
    """Events by the byte are events of the whole, and make up what was read."""
    for _, (_, _, stream) in _exchanges(recording):
        whole, reader = list(Reader().feed(stream)), Reader()
        pieces = [stream[at : at + 1] for at in range(len(stream))]
        assert [e for piece in pieces for e in reader.feed(piece)] == whole
        assert b"".join(event(each.data, each.name) for each in whole) == stream
