"""The agent done right: kill it at any moment, resume it, and nobody sees anything.

It is documentation that runs, meant to be read top to bottom and copied:

1. `state`         what a run is: frozen data that goes through JSON unharmed
2. `transitions`   how a run moves: pure functions from one state to the next
3. `tools`         what it may call, and what each service promises; edit this table
4. `effects`       how one tool call comes to be applied once
5. `stores.base`   where runs are kept, under one lease each, with a fencing token
6. `loop`          the machine: one saved state, one outside call, the next saved state
7. `one_shot`      a run by the hand of whoever started it; people's answers
8. `worker`        runs by whoever is free; `owner` tells who has died, `stop` ends it
9. `__main__`      the command line (`warm`: for lives that are forked)

What they rest on, to be looked up when needed: `checkpoint` and `logs` (what is stored,
what operators read), `model_client` with `endpoints`, `model_reply` and `retry_after`,
`tool_clients` (HTTP, MCP, mail), five `stores`, and `conformance`, the tests for a
store of your own.

One rule carries the rest: **a move makes at most one outside call that can change
anything, and it starts and ends at a checkpoint.** So a killed run can only be at a
checkpoint, or inside the one call that the checkpoint announces. `effects` says what to
do about that call; nothing else is ever in question.
"""
