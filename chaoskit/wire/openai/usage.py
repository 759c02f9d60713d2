"""What a request and its answer cost, in both shapes that the OpenAI API gives it.

Tokens are counted by length (`chaoskit.wire.said.tokens`). Prompts are taken as cached
as the real service caches them: from 1024 tokens on, in steps of 128. Reasoning is paid
for where the request asks for an effort, and never shown.
"""

from dataclasses import dataclass

from pydantic import JsonValue

CACHED_TOKENS_MIN = 1024
CACHED_TOKENS_STEP = 128
TOKENS_PER_MESSAGE = 3
REASONING_TOKENS = {"low": 64, "medium": 128, "high": 256, "xhigh": 512, "max": 512}
"""By effort; none for efforts that are not named here."""


@dataclass(frozen=True)
class Usage:
    """Tokens paid; ``reasoning`` is part of ``completion``."""

    prompt: int
    completion: int
    reasoning: int = 0

    @property
    def cached(self) -> int:
        """How many of the prompt's tokens were cheaper."""
        if self.prompt < CACHED_TOKENS_MIN:
            return 0
        return self.prompt - self.prompt % CACHED_TOKENS_STEP

    def of_chat(self) -> dict[str, JsonValue]:
        """As Chat Completions writes it."""
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
            "prompt_tokens_details": {"cached_tokens": self.cached, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": self.reasoning,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        }

    def of_responses(self) -> dict[str, JsonValue]:
        """As Responses writes it."""
        return {
            "input_tokens": self.prompt,
            "input_tokens_details": {
                "cached_tokens": self.cached,
                "cache_write_tokens": 0,
            },
            "output_tokens": self.completion,
            "output_tokens_details": {"reasoning_tokens": self.reasoning},
            "total_tokens": self.prompt + self.completion,
        }


def reasoning_tokens(effort: object) -> int:
    """What an effort costs in each alternative."""
    return REASONING_TOKENS.get(str(effort), 0)
