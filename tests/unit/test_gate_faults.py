"""The gate's faults other than a kill: what each does to a message, and no more."""

import asyncio

import pytest

from chaoskit.gate import Dropped, Failed, FreshNames, Gate, Recorder
from chaoskit.model.address import Operation
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import FaultFired
from chaoskit.model.schedule import Schedule
from chaoskit.model.trial import Trial

PAY = Operation("tools", "pay", "o-1")
SET = Operation("redis", "set", "x")
WRITE = Operation("files", "write", "log")
CHAT = Operation("llm", "chat")


class House:
    """A gate, and all that was done to its agent and its services, in order."""

    def __init__(self, schedule):
        self.deeds = []
        self.finds_something = True
        names, schedule = FreshNames("run-1"), Schedule.parse(schedule)
        self.gate = Gate(Recorder(), names, schedule, self.end_life, strike=self.strike)

    async def end_life(self, life, cause):
        self.deeds.append(f"killed {life}")

    async def strike(self, life, fault):
        self.deeds.append(f"{fault.kind} {life}")

    async def suffer(self, fault, crossing):
        self.deeds.append(f"{fault.kind} of {crossing.operation}")
        return self.finds_something

    async def send(self, operation, life=0):
        crossing = self.gate.arrive(life, operation)

        async def apply():
            self.deeds.append(f"applied {crossing.nth}")
            return crossing

        return await self.gate.cross(crossing, apply, host=self)

    async def deliver(self, crossing, *pieces):
        async def send(piece):
            self.deeds.append(piece.decode())

        await self.gate.deliver(crossing, [p.encode() for p in pieces], send)

    @property
    def fired(self):
        return [e.fault for e in self.gate.record.events if isinstance(e, FaultFired)]


def run(scene):
    async def limited():
        async with asyncio.timeout(5):
            return await scene

    return asyncio.run(limited())


@pytest.mark.parametrize(
    ("schedule", "operation", "outcome", "deeds"),
    [
        ("refuse@0:tools.pay[o-1]#1:before", PAY, Dropped, []),
        ("drop_reply@0:tools.pay[o-1]#1:after", PAY, Dropped, ["applied 1"]),
        ("error(503)@0:tools.pay[o-1]#1:before", PAY, Failed, []),
        ("error(503)@0:tools.pay[o-1]#1:after", PAY, Failed, ["applied 1"]),
        ("full@0:redis.set[x]#1:before", SET, Failed, []),
        ("restart@0:redis.set[x]#1:before", SET, Dropped, ["restart of redis.set[x]"]),
        (
            "powerloss@0:files.write[log]#1:after",
            WRITE,
            Dropped,
            ["applied 1", "killed 0", "powerloss 0"],
        ),
    ],
)
def test_faults_that_end_a_message(schedule, operation, outcome, deeds):
    """The service is told how; the agent lives, unless the machine has stopped."""
    house = House(schedule)
    with pytest.raises(outcome) as ended:
        run(house.send(operation))
    assert house.deeds == deeds
    assert house.fired == [schedule]
    assert house.gate.is_over(0) == ("killed 0" in deeds)
    if outcome is Failed:
        assert str(ended.value.fault) == schedule


@pytest.mark.parametrize(
    ("schedule", "deeds"),
    [
        ("kill_one@0:redis.set[x]#1:before", ["kill_one 0", "applied 1"]),
        ("term@0:redis.set[x]#1:after", ["applied 1", "term 0"]),
        ("skew(-60)@0:redis.set[x]#1:before", ["skew 0", "applied 1"]),
        ("pause@0:redis.set[x]#1:after", ["applied 1", "pause 0"]),
        ("rollback@0:redis.set[x]#1:after", ["applied 1", "rollback of redis.set[x]"]),
        ("expire@0:redis.set[x]#1:before", ["expire of redis.set[x]", "applied 1"]),
        ("delay(0.001)@0:redis.set[x]#1:before", ["applied 1"]),
    ],
)
def test_faults_after_which_a_message_goes_on(schedule, deeds):
    house = House(schedule)
    assert run(house.send(SET)).nth == 1
    assert house.deeds == deeds
    assert house.fired == [schedule]
    run(house.send(SET))
    assert house.deeds == [*deeds, "applied 2"], "a fault strikes once"


def test_a_duplicate_is_applied_twice_and_answered_once():
    house = House("duplicate@0:tools.pay[o-1]#1:before")
    run(house.send(PAY))
    assert house.deeds == ["applied 1", "applied 1"]


def test_faults_at_one_place_strike_in_the_schedule_s_order():
    house = House("rollback@0:redis.set[x]#1:after + kill@0:redis.set[x]#1:after")
    with pytest.raises(Dropped):
        run(house.send(SET))
    assert house.deeds == ["applied 1", "rollback of redis.set[x]", "killed 0"]


def test_while_one_message_is_delayed_others_pass():
    house = House("delay(600)@0:redis.set[x]#1:before")

    async def scene():
        held = asyncio.create_task(house.send(SET))
        await asyncio.sleep(0)
        await house.send(PAY)
        assert not held.done()
        house.gate.close(0)
        with pytest.raises(Dropped):
            await held

    run(scene())
    assert house.deeds == ["applied 1", "applied 1"], "it lands late, and at once"
    assert house.gate.record.events[-1].late


def test_a_paused_message_keeps_the_door_open_for_the_next_life():
    class Paused(House):
        async def strike(self, life, fault):
            await self.send(SET, life=1)

    house = Paused("pause@0:redis.set[x]#1:before")
    run(house.send(SET))
    crossed = [e.address for e in house.gate.record.events if e.kind == "crossed"]
    assert crossed == [
        "0:redis.set[x]#1:before",
        "1:redis.set[x]#1:before",
        "1:redis.set[x]#1:after",
        "0:redis.set[x]#1:after",
    ]


def test_a_pause_in_every_life_strikes_none_that_took_over():
    """Each would be stopped and followed by another, without an end."""

    class Paused(House):
        async def strike(self, life, fault):
            await super().strike(life, fault)
            await self.send(SET, life=life + 1)

    house = Paused("pause@*:redis.set[x]#1:before")
    run(house.send(SET))
    assert house.deeds == ["pause 0", "applied 1", "applied 1"]
    run(house.send(SET, life=2))
    assert house.deeds[3] == "pause 2", "one that follows is struck again"


@pytest.mark.parametrize(
    ("fault", "outcome", "deeds"),
    [
        ("tear", Dropped, ["ab"]),
        ("kill", Dropped, ["ab", "killed 0"]),
        ("error(500)", Failed, ["ab"]),
    ],
)
def test_a_reply_is_cut_after_so_many_pieces(fault, outcome, deeds):
    house = House(f"{fault}@0:llm.chat#1:part:2")

    async def scene():
        crossing = await house.send(CHAT)
        await house.deliver(crossing, "a", "b", "c")

    with pytest.raises(outcome):
        run(scene())
    assert house.deeds == ["applied 1", *deeds]
    assert house.fired == [f"{fault}@0:llm.chat#1:part:2"]


def test_a_reply_without_a_fault_is_sent_at_once():
    house = House("tear@0:llm.chat#1:part:3")

    async def scene():
        crossing = await house.send(CHAT)
        await house.deliver(crossing, "a", "b", "c")

    run(scene())
    assert house.deeds == ["applied 1", "abc"]
    assert house.fired == [], "there is no place inside after the last piece"
    assert len(house.gate.unfired) == 1


def test_a_torn_write_lands_in_part_and_ends_its_life():
    house = House("tear@0:files.write[log]#2:part:5")

    async def scene():
        first = house.gate.arrive(0, WRITE)
        assert house.gate.torn(first, 9) is None
        await house.gate.cross(first, lambda: asyncio.sleep(0))
        second = house.gate.arrive(0, WRITE)
        assert house.gate.torn(second, 9) == 5
        await house.gate.cross(second, lambda: asyncio.sleep(0), pieces=9)

    with pytest.raises(Dropped):
        run(scene())
    assert house.deeds == ["killed 0"]
    crossed = [e for e in house.gate.record.events if e.kind == "crossed"]
    assert crossed[-1].address.endswith("#2:part:5")
    assert crossed[-2].pieces == 9, "explorers learn from it where it can be torn"


def test_a_write_is_not_torn_behind_its_last_byte():
    house = House("tear@0:files.write[log]#1:part:9")

    async def scene():
        short = house.gate.arrive(0, WRITE)
        assert house.gate.torn(short, 9) is None, "it is written whole"
        await house.gate.cross(short, lambda: asyncio.sleep(0), pieces=9)

    run(scene())
    assert house.deeds == house.fired == []
    assert len(house.gate.unfired) == 1


@pytest.mark.parametrize("found", [True, False])
def test_a_fault_that_finds_nothing_to_do_has_not_struck(found):
    """It fired, and that is told; but it is no proof of anything."""
    house = House("expire@0:redis.set[x]#1:before")
    house.finds_something = found
    run(house.send(SET))
    events = tuple(house.gate.record.events)
    assert [e.idle for e in events if isinstance(e, FaultFired)] == [not found]
    trial = Trial("t", "run-1", Schedule(), events)
    assert len(trial.struck) == found


def test_a_service_knows_what_it_has_to_be_ready_for():
    house = House("rollback@0:redis.set[x]#1:after")
    assert house.gate.expects(FaultKind.ROLLBACK, "redis")
    assert not house.gate.expects(FaultKind.ROLLBACK, "postgres")
    assert not house.gate.expects(FaultKind.RESTART, "redis")
    run(house.send(SET))
    assert not house.gate.expects(FaultKind.ROLLBACK, "redis")


def test_a_fault_names_the_message_that_was_held():
    """Two calls came at once; the newest one still waits for the door."""
    house = House("drop_reply@0:tools.pay[o-1]#1:after")
    first, second = (house.gate.arrive(0, PAY) for _ in range(2))

    async def scene():
        async def apply():
            return None

        with pytest.raises(Dropped):
            await house.gate.cross(first, apply)
        await house.gate.cross(second, apply)

    run(scene())
    events = house.gate.record.events
    fired = [event for event in events if isinstance(event, FaultFired)]
    assert [event.message for event in fired] == [first.message]
    assert first.message != second.message
