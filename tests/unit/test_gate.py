"""The gate: what it counts and holds, whom it drops, and what it lets land late."""

import asyncio
from collections import Counter

import pytest

from chaoskit.gate import Dropped, FreshNames, Gate, Recorder
from chaoskit.model.address import Operation
from chaoskit.model.history import Applied, LifeEnded
from chaoskit.model.schedule import Schedule

CHAT = Operation("llm", "chat")
PAY = Operation("tools", "pay", "o-1")
SET = Operation("redis", "set", "x")


class House:
    """A gate, the lives it ended, and a world in which letters are applied."""

    def __init__(self, schedule="", *, watch=None, patience=0):
        self.lines = []
        self.record = Recorder(self)
        self.ended = []
        self.world = []
        self.patience = patience
        self.struck = asyncio.Event()
        names = FreshNames("run-1")
        self.gate = Gate(
            self.record, names, Schedule.parse(schedule), self.end_life, watch
        )

    def write(self, line):
        self.lines.append(line)

    async def end_life(self, life, cause):
        assert self.gate.is_over(life)
        for _ in range(self.patience):
            await asyncio.sleep(0)
        self.ended.append((life, cause))
        self.struck.set()

    def arrive(self, operation, life=0):
        return self.gate.arrive(life, operation)

    async def send(self, operation, letter="x", life=0):
        return await self.pass_on(self.arrive(operation, life), letter)

    async def pass_on(self, crossing, letter="x"):
        async def apply():
            await asyncio.sleep(0)
            self.world.append(letter)
            return f"reply to {letter}"

        return await self.gate.cross(crossing, apply)

    async def keep_busy(self):
        """A message of some other life, so that those after it queue at the door."""
        return await self.send(Operation("redis", "del", "y"), "other", life=9)

    @property
    def told(self):
        """The history in short."""
        return [
            f"{event.address}{' late' if event.late else ''}"
            if event.kind == "crossed"
            else event.kind
            for event in self.record.events
        ]


def run(scene):
    """Play a scene; a second is an age for it."""

    async def limited():
        async with asyncio.timeout(5):
            return await scene

    return asyncio.run(limited())


async def outcomes(*sendings):
    return await asyncio.gather(*sendings, return_exceptions=True)


# --- passing -------------------------------------------------------------------------


def test_a_message_passes_both_edges_and_is_answered():
    house = House()
    assert run(house.send(PAY, "a")) == "reply to a"
    assert house.world == ["a"]
    assert house.told == ["0:tools.pay[o-1]#1:before", "0:tools.pay[o-1]#1:after"]
    assert len(house.lines) == 2
    assert all(line.endswith("}\n") for line in house.lines)


def test_messages_are_counted_by_life_and_operation():
    house = House()
    operations = [PAY, CHAT, PAY, Operation("tools", "pay", "o-2"), PAY]
    crossings = [house.arrive(op) for op in operations]
    crossings += [house.arrive(PAY, life=1), house.arrive(CHAT, life=1)]
    assert [c.nth for c in crossings] == [1, 1, 2, 1, 3, 1, 1]
    assert len({c.message for c in crossings}) == len(crossings)


def test_messages_of_a_restored_world_have_numbers_of_their_own():
    house = House()
    earlier = house.arrive(PAY)
    event = Applied(life=0, message=earlier.message, tool="pay", args={})
    continued = Recorder(events=[house.record.place(event)])
    gate = Gate(continued, FreshNames("run-1"), Schedule(), house.end_life)
    assert gate.arrive(1, PAY).message != earlier.message


def test_events_are_numbered_and_timed_in_one_order():
    house = House()

    async def scene():
        await outcomes(*(house.send(PAY) for _ in range(5)))

    run(scene())
    events = house.record.events
    assert [event.seq for event in events] == list(range(10))
    times = [event.t for event in events]
    assert times == sorted(times)
    assert min(times) >= 0


def test_the_world_changes_one_whole_message_at_a_time():
    house = House()
    inside = []

    async def apply():
        inside.append("in")
        await asyncio.sleep(0)
        inside.append("out")

    async def scene():
        await outcomes(*(house.gate.cross(house.arrive(PAY), apply) for _ in range(3)))

    run(scene())
    assert inside == ["in", "out"] * 3


def test_what_goes_wrong_inside_goes_to_the_service():
    house = House()

    async def apply():
        raise OSError("the server is gone")

    async def scene():
        with pytest.raises(OSError, match="the server is gone"):
            await house.gate.cross(house.arrive(PAY), apply)
        house.gate.close(0)
        await house.gate.settled(0)

    run(scene())


# --- killing -------------------------------------------------------------------------


def test_killed_before_nothing_is_applied():
    house = House("kill@0:tools.pay[o-1]#1:before")

    async def scene():
        with pytest.raises(Dropped):
            await house.send(PAY)

    run(scene())
    assert house.world == []
    assert house.ended == [(0, "fault")]
    assert house.told == ["0:tools.pay[o-1]#1:before", "fault"]
    assert house.gate.unfired == []


def test_killed_after_it_is_applied_and_not_answered():
    house = House("kill@0:tools.pay[o-1]#1:after")

    async def scene():
        with pytest.raises(Dropped):
            await house.send(PAY)

    run(scene())
    assert house.world == ["x"]
    assert house.ended == [(0, "fault")]
    assert house.told[-2:] == ["0:tools.pay[o-1]#1:after", "fault"]


def test_the_nth_of_its_kind_in_the_right_life_is_struck():
    house = House("kill@1:tools.pay[o-1]#2:before")

    async def scene():
        await house.send(PAY)
        await house.send(PAY)
        await house.send(PAY, life=1)
        await house.send(Operation("tools", "pay", "o-2"), life=1)
        with pytest.raises(Dropped):
            await house.send(PAY, life=1)

    run(scene())
    assert house.ended == [(1, "fault")]


def test_a_life_that_is_over_is_dropped_at_arrival():
    house = House("kill@0:tools.pay[o-1]#1:before")

    async def scene():
        await outcomes(house.send(PAY))
        with pytest.raises(Dropped):
            house.arrive(CHAT)
        await house.send(CHAT, life=1)

    run(scene())
    assert house.told[-2:] == ["1:llm.chat#1:before", "1:llm.chat#1:after"]


def test_of_messages_in_flight_the_applied_are_late_and_the_rest_dropped():
    """One had passed `before` when its life was ended, one had not."""
    house = House("kill@0:tools.pay[o-1]#1:before")

    async def scene():
        passed, struck, behind = (house.arrive(op) for op in (SET, PAY, CHAT))
        return await outcomes(
            house.keep_busy(),
            house.pass_on(passed, "passed"),
            house.pass_on(struck, "struck"),
            house.pass_on(behind, "behind"),
        )

    _, *dropped = run(scene())
    assert [type(outcome) for outcome in dropped] == [Dropped] * 3
    assert house.world == ["other", "passed"]
    assert house.told[2:] == [
        "0:redis.set[x]#1:before",
        "0:tools.pay[o-1]#1:before",
        "fault",
        "0:redis.set[x]#1:after late",
    ]


def test_nobody_passes_while_a_life_is_being_ended():
    house = House("kill@0:tools.pay[o-1]#1:before", patience=50)

    async def scene():
        struck, other = house.arrive(PAY), house.arrive(CHAT, life=1)
        await outcomes(house.pass_on(struck), house.pass_on(other))

    run(scene())
    assert house.told[:2] == ["0:tools.pay[o-1]#1:before", "fault"]
    assert house.told[2:] == ["1:llm.chat#1:before", "1:llm.chat#1:after"]


def test_ending_a_life_may_wait_for_what_needs_the_gate_open():
    """To end a life is to wait for a process; messages may arrive meanwhile."""
    house = House("kill@0:tools.pay[o-1]#1:after")
    arrived = asyncio.Event()

    async def end_life(life, cause):
        await arrived.wait()

    house.gate._end_life = end_life

    async def latecomer():
        await asyncio.sleep(0)
        crossing = house.arrive(CHAT, life=1)
        arrived.set()
        return await house.pass_on(crossing)

    async def scene():
        return await outcomes(house.send(PAY), latecomer())

    dropped, reply = run(scene())
    assert isinstance(dropped, Dropped)
    assert reply == "reply to x"


def test_when_settled_nothing_of_a_life_is_on_its_way():
    house = House("kill@0:tools.pay[o-1]#1:before")

    async def scene():
        flights = [house.arrive(op) for op in (SET, SET, PAY, CHAT)]
        tasks = [asyncio.create_task(house.pass_on(each)) for each in flights]
        await asyncio.sleep(0)
        await house.struck.wait()
        await house.gate.settled(0)
        settled = list(house.told)
        await outcomes(*tasks)
        assert house.told == settled

    run(scene())
    assert house.world == ["x", "x"]


def test_a_life_without_messages_is_settled():
    house = House()
    house.gate.close(0)
    run(house.gate.settled(0))


def test_a_life_that_ends_by_itself_leaves_late_messages_too():
    house = House()

    async def scene():
        passed = house.arrive(SET)
        task = asyncio.create_task(house.pass_on(passed))
        await asyncio.sleep(0)
        assert house.told == ["0:redis.set[x]#1:before"]
        house.gate.close(0)
        await house.gate.settled(0)
        assert isinstance((await outcomes(task))[0], Dropped)

    run(scene())
    assert house.told[-1] == "0:redis.set[x]#1:after late"
    assert house.ended == []


def test_a_client_that_goes_away_leaves_the_count_right():
    house = House()

    async def scene():
        tasks = [asyncio.create_task(house.send(PAY)) for _ in range(3)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await outcomes(*tasks)
        house.gate.close(0)
        await house.gate.settled(0)

    run(scene())


# --- faults --------------------------------------------------------------------------


def test_several_faults_strike_in_several_lives():
    house = House("kill@0:llm.chat#1:after + kill@1:llm.chat#1:before")

    async def scene():
        for life in range(3):
            await outcomes(house.send(CHAT, life=life))

    run(scene())
    assert house.ended == [(0, "fault"), (1, "fault")]
    assert house.gate.unfired == []


def test_what_is_never_reached_stays_unfired():
    house = House("kill@0:llm.chat#1:after + kill@0:llm.chat#2:before")

    async def scene():
        await outcomes(house.send(CHAT))
        await house.send(CHAT, life=1)

    run(scene())
    assert [str(fault) for fault in house.gate.unfired] == ["kill@0:llm.chat#2:before"]


def test_a_fault_that_is_scheduled_twice_fires_once():
    house = House("kill@0:llm.chat#1:after + kill@0:llm.chat#1:after")
    run(outcomes(house.send(CHAT)))
    assert len(house.gate.unfired) == 1


def test_a_fault_of_every_life_strikes_in_every_life():
    house = House("kill@*:llm.chat#1:before")

    async def scene():
        for life in range(3):
            await outcomes(house.send(CHAT, life=life))

    run(scene())
    assert house.ended == [(0, "fault"), (1, "fault"), (2, "fault")]
    fired = [event.fault for event in house.record.events if event.kind == "fault"]
    assert fired == ["kill@*:llm.chat#1:before"] * 3


def test_disarmed_it_lets_all_pass():
    async def watch(address):
        raise AssertionError("nobody looks any more")

    house = House("kill@0:llm.chat#1:before", watch=watch)
    house.gate.disarm()
    assert run(house.send(CHAT)) == "reply to x"
    assert len(house.gate.unfired) == 1


# --- watching ------------------------------------------------------------------------


def test_a_watch_sees_every_edge_and_the_world_as_it_is_there():
    seen = []

    async def watch(address):
        seen.append((address.point, list(house.world)))
        return False

    house = House(watch=watch)
    run(house.send(PAY, "a"))
    assert seen == [
        ("tools.pay[o-1]#1:before", []),
        ("tools.pay[o-1]#1:after", ["a"]),
    ]


def test_a_watch_can_end_the_life():
    async def watch(address):
        return address.nth == 2

    house = House(watch=watch)

    async def scene():
        await house.send(CHAT)
        with pytest.raises(Dropped):
            await house.send(CHAT)

    run(scene())
    assert house.ended == [(0, "cut")]
    assert house.world == ["x"]
    assert "fault" not in house.told


def test_a_watch_sees_no_late_message():
    seen = Counter()

    async def watch(address):
        seen[address.point] += 1
        return False

    house = House("kill@0:tools.pay[o-1]#1:before", watch=watch)

    async def scene():
        passed, struck = house.arrive(SET), house.arrive(PAY)
        messages = house.pass_on(passed), house.pass_on(struck)
        await outcomes(house.keep_busy(), *messages)

    run(scene())
    assert house.told[-1] == "0:redis.set[x]#1:after late"
    assert [point for point in seen if "set" in point] == ["redis.set[x]#1:before"]


# --- names ---------------------------------------------------------------------------

UUID = "3f2b8c1e-9a4d-4e5f-8b6a-7c8d9e0f1a2b"
UUID_2 = "00000000-9a4d-4e5f-8b6a-7c8d9e0f1a2b"
ULID = "01HQ3V5K8Z9X7Y6W5V4T3S2R1Q"
HEX = "9f86d081884c7d65"
CUID = "cjld2cjxh0000qzrmn831i7rn"
MILLIS = "1764443000123"


def test_the_run_has_one_name_in_every_run():
    assert FreshNames("run-1")("agent:checkpoint:run-1") == "agent:checkpoint:{run}"


@pytest.mark.parametrize("word", [UUID, ULID, HEX, CUID, MILLIS, UUID.upper()])
def test_words_that_look_random_are_renamed(word):
    assert FreshNames("run-1")(f"lock:{word}/x") == "lock:{1}/x"


def test_names_are_given_in_order_of_first_sight():
    names = FreshNames("run-1")
    keys = [f"a:{UUID}", f"b:{UUID_2}", f"c:{UUID}:{HEX}"]
    assert list(map(names, keys)) == ["a:{1}", "b:{2}", "c:{1}:{3}"]


def test_names_go_on_where_an_earlier_life_left_them():
    names = FreshNames("run-1")
    names(UUID)
    later = FreshNames("run-1", dict(names.known))
    assert [later(UUID_2), later(UUID)] == ["{2}", "{1}"]


@pytest.mark.parametrize(
    "key",
    ["o-1", "agent:state", "2025-11-29", "order-123456789", "internationalization"],
)
def test_words_that_people_write_stay(key):
    assert FreshNames("run-1")(key) == key


def test_a_word_of_the_scenario_is_not_fresh_however_it_looks():
    names = FreshNames("run-1", said=f'{{"order": "{UUID}"}}')
    assert names(UUID) == UUID
    assert names(UUID_2) == "{1}"


def test_a_part_of_a_word_of_the_scenario_is_fresh():
    names = FreshNames("run-1", said='["ab12345678901"]')
    assert names("1234567890") == "{1}"


def test_keys_are_renamed_at_arrival():
    house = House()
    one = house.arrive(Operation("redis", "set", f"run-1:{UUID}"))
    other = house.arrive(Operation("redis", "set", f"run-1:{UUID_2}"))
    assert one.operation.key == "{run}:{1}"
    assert other.operation.key == "{run}:{2}"
    assert (one.nth, other.nth) == (1, 1)


# --- the recorder --------------------------------------------------------------------


def test_a_recorder_goes_on_with_an_earlier_history():
    first = Recorder()
    first(LifeEnded(life=0, cause="itself", ending="died"))
    second = Recorder(began=first.began)
    for event in first.events:
        second.place(event)
    later = second(LifeEnded(life=1, cause="itself", ending="done"))
    assert later.seq == 1
    assert later.t >= second.events[0].t == first.events[0].t
