"""chaoskit kills resumable agents at exact moments and judges what comes of it.

The nouns, each used in one sense everywhere:

A *scenario* says what is tried: a task, a scripted model, tools, and a search. The
*agent* is the thing under test, known by its *manifest* only. The *world* is the set of
services that the agent can reach, all of them ours. A *crossing* is one message at one
edge of a service; it has an *address*. A *fault* strikes at a crossing; a *schedule*
is faults at crossings. A *life* is one process of the agent, from its start to its
death. A *trial* is one schedule and all that it produced; a *history* is its events in
order. A *check* reads a history and yields *findings*; findings and doubts make a
*verdict*: pass, fail or inconclusive. A *campaign* is many trials, chosen by an
*explorer*; a *report* says what came of it.

An agent itself needs none of this but, where it wants, `chaoskit.mark`, which is of the
standard library alone.
"""

from chaoskit.mark import mark as mark

__version__ = "0.4.0"
