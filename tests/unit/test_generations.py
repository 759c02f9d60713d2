"""Many processes at one gate: addresses by generation, looks that nobody is told of."""

import asyncio

import pytest

from chaoskit.gate import Dropped, FreshNames, Gate, Recorder
from chaoskit.model.address import Operation
from chaoskit.model.schedule import Schedule
from chaoskit.trial.generations import NEWS_MAX, POLLS_RECORDED_MAX, Generations

CHAT = Operation("llm", "chat")
CLAIM = Operation("redis", "set", "lease")
LOOK = -1


class Crowd:
    """A gate that several lives meet, and a clock that is set by hand."""

    def __init__(self, schedule=""):
        self.time = 0.0
        self.census = Generations(lambda: self.time)
        self.ended = []
        self.record = Recorder()
        names = FreshNames("run-1")
        self.gate = Gate(
            self.record,
            names,
            Schedule.parse(schedule),
            self.end_life,
            census=self.census,
        )

    async def end_life(self, life, cause):
        self.ended.append(life)
        self.census.next()

    def send(self, life, operation=CHAT, *, in_vain=False):
        """A message that nobody drops; returns its number."""
        crossing = self.gate.arrive(life, operation)

        async def apply():
            if operation == CLAIM:
                self.gate.has_applied(crossing, changed=not in_vain)

        asyncio.run(self.gate.cross(crossing, apply))
        return crossing.nth

    @property
    def told(self):
        return [event.address for event in self.record.events]


@pytest.fixture
def crowd():
    return Crowd()


def test_numbers_count_over_all_processes(crowd):
    assert [crowd.send(life) for life in (3, 5, 3)] == [1, 2, 3]
    assert crowd.told[-1] == "0:llm.chat#3:after"


def test_a_death_begins_the_next_generation_for_all(crowd):
    crowd.send(3)
    crowd.census.next()
    assert crowd.send(5) == 1
    assert crowd.told[-1] == "1:llm.chat#1:after"


def test_a_fault_ends_the_process_that_sent_the_message():
    crowd = Crowd("kill@0:llm.chat#2:after")
    crowd.send(3)
    with pytest.raises(Dropped):
        crowd.send(5)
    assert crowd.ended == [5]
    assert [e.life for e in crowd.record.events if e.kind == "fault"] == [5]


def test_a_look_is_neither_counted_nor_recorded_nor_struck():
    crowd = Crowd("kill@0:llm.chat#1:before")
    crowd.send(LOOK)
    assert crowd.told == []
    assert crowd.gate.unfired
    assert not crowd.ended


def test_what_was_tried_in_vain_leaves_its_number_to_the_next(crowd):
    """So a claim has the same address, however often others failed to claim."""
    assert crowd.send(3, CLAIM) == 1
    assert crowd.send(5, CLAIM, in_vain=True) == 2
    assert crowd.send(5, CLAIM, in_vain=True) == 2
    assert crowd.send(3, CLAIM) == 2
    after = [address for address in crowd.told if address.endswith("after")]
    assert after == [f"0:redis.set[lease]#{n}:after" for n in (1, 2)]


def test_who_wins_has_the_number_of_a_try_that_was_on_its_way(crowd):
    """Two arrive at once, and the one that came first gets nothing."""

    async def both():
        arrived = [crowd.gate.arrive(life, CLAIM) for life in (3, 5)]
        for crossing, wins in zip(arrived, (False, True), strict=True):

            async def apply(crossing=crossing, wins=wins):
                crowd.gate.has_applied(crossing, changed=wins)

            await crowd.gate.cross(crossing, apply)

    asyncio.run(both())
    after = [address for address in crowd.told if address.endswith("after")]
    assert after == ["0:redis.set[lease]#1:after"]


def test_no_fault_strikes_after_something_that_was_in_vain():
    crowd = Crowd("kill@0:redis.set[lease]#1:after")
    crowd.send(5, CLAIM, in_vain=True)
    assert not crowd.ended
    with pytest.raises(Dropped):
        crowd.send(3, CLAIM)
    assert crowd.ended == [3]


def test_a_poll_is_no_news(crowd):
    """A store that is asked for the same again and again shows no progress."""
    for _ in range(NEWS_MAX):
        crowd.time += 1
        crowd.send(3, CLAIM)
    last = crowd.time
    crowd.time += 1
    crowd.send(3, CLAIM)
    assert crowd.census.news_at == last
    crowd.send(3)
    assert crowd.census.news_at == crowd.time


def test_an_endless_poll_makes_no_endless_history(crowd):
    for _ in range(POLLS_RECORDED_MAX + 100):
        crowd.send(3, CLAIM)
    recorded = len(crowd.told)
    assert recorded < 2 * (POLLS_RECORDED_MAX + 10)
    crowd.send(3)
    assert len(crowd.told) == recorded + 2
