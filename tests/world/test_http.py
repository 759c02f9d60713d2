"""A client may wait to be asked for its body (RFC 9110, section 10.1.1)."""

import asyncio
from urllib.parse import urlsplit

from chaoskit.world.tools import Tools


async def test_a_client_that_waits_for_100_continue_gets_it(make_gate, make_scenario):
    """Else it would wait for ever, and look like an agent that hangs."""
    tools = Tools()
    await tools.start()
    try:
        await tools.reset(make_gate(), make_scenario())
        at = urlsplit((await tools.open(0))["CHAOSKIT_TOOLS_URL"])
        reader, writer = await asyncio.open_connection(at.hostname, at.port)
        head = f"POST {at.path}/nobody HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n"
        writer.write(f"{head}Expect: 100-continue\r\n\r\n".encode())
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"{}")
        assert (await reader.readline()).startswith(b"HTTP/1.1 404")
        writer.close()
    finally:
        await tools.stop()
