"""Fingerprints of worlds: equal for worlds that an agent cannot tell apart.

Two runs never leave the same bytes: ids are fresh, clocks move. Before a view is hashed
it is made canonical:

1. text that holds JSON is read as JSON; large texts have been made small when the
   look was taken (`chaoskit.explore.large`);
2. the run's id becomes ``{run}``;
3. words that look random and were not the same in both baselines are renamed in order
   of first sight, ``<1>``, ``<2>``, so that it still shows which of them are equal;
4. clock readings close to the campaign's own time become ``<time>``;
5. fields whose values differed between the two baselines, and those that the scenario
   lists as ``volatile``, become ``<volatile>``.

A path names a field: ``redis:0.agent:checkpoint:{run}.value.messages.2.content``, with
``<?>`` for any random word in it. The scenario's patterns may hold ``*`` for any
stretch of it.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from chaoskit.explore.canonical import Canon as Canon
from chaoskit.explore.words import random_words
from chaoskit.model.state import View


def learn(
    pairs: Iterable[tuple[View, View]],
    run_ids: tuple[str, str],
    since: float,
    ignored: tuple[str, ...] = (),
) -> Canon:
    """Compare the two baselines, look by look, and keep what mostly differs.

    A field that differs now and then is not noise: it shows that the runs were not at
    the same point, as where a heartbeat shares an operation with the checkpoints.

    Args:
        pairs: views of the first and the second baseline at the same address.
        run_ids: the ids of the two runs.
        since: the campaign's start, seconds of the epoch.
        ignored: the scenario's own patterns.
    """
    pairs = list(pairs)
    seen = [[random_words(pair[side]) for pair in pairs] for side in (0, 1)]
    stable = frozenset(set().union(*seen[0]) & set().union(*seen[1]))
    blank = Canon(frozenset(run_ids), since, stable, ignored=ignored)
    compared: Counter[str] = Counter()
    differed: Counter[str] = Counter()
    for first, second in pairs:
        left, right = blank.fields(first), blank.fields(second)
        common = left.keys() & right.keys()
        compared.update(common)
        differed.update(path for path in common if left[path] != right[path])
    volatile = {path for path, times in differed.items() if 2 * times > compared[path]}
    return replace(blank, volatile=frozenset(volatile))


def moving_fields(canon: Canon, views: Iterable[View]) -> list[str]:
    """Fields that differ between views of one place, most often first."""
    counts: dict[str, set[str]] = {}
    for view in views:
        for path, value in canon.fields(view).items():
            counts.setdefault(path, set()).add(value)
    moving = [path for path, values in counts.items() if len(values) > 1]
    return sorted(moving, key=lambda path: (-len(counts[path]), path))
