"""The self-test: agents with one defect each, and correct ones, that prove the harness.

A *specimen* is a small agent under `specimens/`, with a scenario as small as shows it.
A *broken* one must be found by the one requirement that it breaks and by no other, a
*correct* one must pass. `catalogue` loads specimens, `run` puts them to the test,
`table` says what came of it; `kit` is for the specimens themselves.
"""
