"""Campaigns of the self-test that run at the same time."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from chaoskit.selftest.campaigns import Campaigns


def test_each_has_its_own_exit_code_however_many_end_at_a_time(tmp_path):
    """To start one is to look how the others ended: nobody may see it but who waits."""
    with Campaigns(tmp_path) as campaigns, ThreadPoolExecutor(8) as threads:
        verbs = [["doc", "crossings"], ["doc", "nothing"]] * 25
        codes = threads.map(lambda words: campaigns.run(words)[0], verbs)
        assert Counter(codes) == {0: 25, 2: 25}
