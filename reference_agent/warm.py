"""All that a life imports, for a parent that imports once and forks each life.

The SDK loads most of itself at the first use, so that is made here, without a request.
"""

from importlib import import_module

from openai import DefaultHttpxClient

import reference_agent.__main__

LATE = (
    *("openai.resources.chat.chat", "anyio", "jiter", "encodings.idna"),
    *("anyio._backends._asyncio", "anyio.streams.stapled", "concurrent.futures.thread"),
    *("reference_agent.stores.redis_snapshots", "reference_agent.stores.redis_log"),
    *("reference_agent.stores.sqlite", "reference_agent.stores.postgres"),
    *("reference_agent.stores.files", "reference_agent.tool_clients.http"),
)

for name in LATE:
    import_module(name)
DefaultHttpxClient(verify=False).close()

main = reference_agent.__main__.main
