"""Says something to whoever looks, who may leave early, as `head` does."""

import os
import sys
from typing import TextIO


def show(text: str, stream: TextIO | None = None) -> None:
    """Print to standard output, or elsewhere; that nobody reads it changes nothing."""
    stream = stream or sys.stdout
    try:
        print(text, end="", flush=True, file=stream)
    except BrokenPipeError:
        # What is still buffered has nowhere to go: let the interpreter's exit be quiet.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
