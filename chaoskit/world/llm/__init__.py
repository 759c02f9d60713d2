"""The `llm` service: one scripted model behind the APIs of several vendors.

``POST /v1/chat/completions`` is the operation ``chat``, ``POST /v1/responses`` is
``responses`` and ``POST /anthropic/v1/messages`` is ``messages``, streamed or not; none
has a key. The edges are ``before``, ``after`` and, inside a reply, ``part:K``: after K
events of a stream, or between the halves of a whole reply. What is refused crosses too,
so that a refusal can be lost like any answer.
Look-ups (``GET /v1/models``) cross nothing.

The answer depends on the conversation alone. Its ids say where it belongs, and are new
in each answer unless the scenario says otherwise. A tool that the script calls is
called whether or not the request declares it.
"""

from chaoskit.world.llm.key import CANARY
from chaoskit.world.llm.service import Llm

__all__ = ["CANARY", "Llm"]
