"""The agent done right: kill it at any moment, resume it, and nobody sees anything.

It is documentation that runs, meant to be read top to bottom and copied:

1. `state`         what a run is: frozen data that goes through JSON unharmed
2. `transitions`   how a run moves: pure functions from one state to the next
3. `store`         where a run is kept: two methods (`redis_store` is one of them)
4. `tools`         what it may call, and what each service promises; edit this table
5. `effects`       how one tool call comes to be applied once
6. `loop`          the machine: one saved state, one outside call, the next saved state
7. `model_client`, `tool_client`   the two services behind HTTP
8. `logs`          what operators read
9. `__main__`      the command line (`warm`: for lives that are forked)

One rule carries the rest: **a move makes at most one outside call, and it starts and
ends at a checkpoint.** So a killed run can only be at a checkpoint, or inside the one
call that the checkpoint announces. `effects` says what to do about that call; nothing
else is ever in question.
"""
