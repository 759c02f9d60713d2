"""The search of a campaign: clean runs, then what the explorer asks for, then proof.

Three stages. Two fault-free runs are the yardstick; if they are none, the search ends
there. The explorer's visits follow, each judged as it comes in. At last each finding is
shown once more by its smallest schedule, with real kills in a fresh world.
"""

import secrets
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import replace

from chaoskit.campaign.missed import TRIES_MAX, TRYING, is_a_race
from chaoskit.campaign.options import Listener, Options, Progress
from chaoskit.campaign.output import introduce, keep, note
from chaoskit.campaign.saved import CONFIRMING
from chaoskit.campaign.tally import NO_EFFECT, NOT_SHOWN_AGAIN, Cause, Tally
from chaoskit.checks import Judgement, answer, judge
from chaoskit.checks.case import NOTHING, Case, Golden
from chaoskit.explore.baseline import Baseline, untouched, without_effects
from chaoskit.explore.beats import Beats
from chaoskit.explore.closure import Closure
from chaoskit.explore.explorer import Explorer
from chaoskit.explore.fingerprint import Canon, learn
from chaoskit.explore.fresh import fresh_patterns
from chaoskit.explore.replay import Replay
from chaoskit.explore.sample import Sample
from chaoskit.explore.steadiness import Steadiness, Views, steadiness
from chaoskit.explore.strikes import Strikes
from chaoskit.explore.sweep import Sweep
from chaoskit.explore.treadmill import Treadmill, so_far
from chaoskit.loading import Loaded
from chaoskit.model.errors import did_you_mean
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import RunEnded
from chaoskit.model.manifest import Store
from chaoskit.model.report import Report, Shown
from chaoskit.model.scenario import PromiseId, Strategy
from chaoskit.model.schedule import Schedule
from chaoskit.model.trial import Trial
from chaoskit.model.visit import Look, Visit, Visited
from chaoskit.pool import Pool
from chaoskit.trial import Plan, Watching

Pending = Future[Visited]
NOTHING_STRUCK = "no fault struck anything, so nothing was put to the test"
NOT_FOLLOWED = "worlds in which a promise was already broken were not followed further"

# A life that was ended at its limit may have hung, or the machine was slow.
MAY_REST_ON_TIME = frozenset({"progress/ends", "progress/resume-after-done"})


class Search:
    """One campaign's search; `run` it once."""

    def __init__(
        self, loaded: Loaded, options: Options, pool: Pool, listener: Listener
    ) -> None:
        self._loaded = loaded
        self._scenario = loaded.scenario
        self._options = options
        self._pool = pool
        self._listener = listener
        self._strikes = Strikes(self._scenario.wanted)
        self._began = time.monotonic()
        self._since = time.time()
        self._tally = Tally(tries_again=self._scenario.search.strategy in TRYING)
        self._stage = "fault-free runs"
        self._submitted = 0
        self._searched = 0
        self._left_over = 0
        self._beyond = 0
        self._beats = Beats()
        self._tries: Counter[Schedule] = Counter()
        self._missed: dict[Schedule, Trial] = {}
        self._fresh: tuple[str, ...] = ()
        self._canon: Canon | None = None
        self._causes_of_clean_run: frozenset[Cause] = frozenset()
        self._golden = NOTHING

    def run(self) -> Report:
        """All three stages."""
        pair = self._clean_runs()
        baseline = Baseline(pair[0].trial, pair[1].trial)
        self._tally.baseline = baseline
        self._golden = Golden.of(baseline.first, baseline.second)
        introduce(self._options.out, self._loaded, self._golden)
        self._say_what_is_not_judged(baseline)
        if self._is_yardstick(baseline):
            self._causes_of_clean_run = frozenset(self._tally.shown)
            views = (_views(pair[0]), _views(pair[1]))
            run_ids = (baseline.first.run_id, baseline.second.run_id)
            self._canon = self._learn(baseline, views, run_ids)
            self._tally.volatile = self._canon.volatile
            # That a field means nothing is its author's word: for closures alone.
            own = replace(self._canon, ignored=())
            steady = steadiness(baseline, views, own)
            baseline = replace(baseline, changing=steady.changing)
            self._doubt_store(baseline)
            self._aim(baseline)
            self._heed(steady)
            self._explore(self._explorer(pair[0]), baseline)
        if self._scenario.search.strategy is not Strategy.REPLAY:
            self._confirm()
        seconds = time.monotonic() - self._began
        return self._tally.report(self._loaded, self._options, seconds)

    def _say_what_is_not_judged(self, baseline: Baseline) -> None:
        """An answer that nothing can be held against is no answer that was right."""
        scenario, manifest = self._scenario, self._loaded.manifest
        case = Case(baseline.first, scenario, manifest, self._golden)
        if PromiseId.ANSWER in (scenario.promises or PromiseId) and (
            why := answer.unknown(case)
        ):
            self._tally.note(f"answer was not judged: {why}")
        if why := answer.compared_in_part(scenario):
            self._tally.note(why)

    def _clean_runs(self) -> tuple[Visited, Visited]:
        """Two fault-free runs; two more if they show keys that are fresh in each."""
        pair = self._clean_pair("baseline-1", "baseline-2")
        self._fresh = fresh_patterns(Baseline(pair[0].trial, pair[1].trial))
        if self._fresh:
            pair = self._clean_pair("baseline-3", "baseline-4")
        return pair

    def _clean_pair(self, *names: str) -> tuple[Visited, Visited]:
        keep = self._scenario.search.strategy is Strategy.CLOSURE
        watching = Watching(snapshots=keep)
        pending = [self._submit(Visit(), name, watching) for name in names]
        first, second = (self._take(each) for each in pending)
        return first, second

    def _is_yardstick(self, baseline: Baseline) -> bool:
        """Whether faults can be judged by these runs; if not, why is a doubt."""
        tally, first = self._tally, baseline.first
        if first.ended.outcome == baseline.second.ended.outcome == "endless":
            if not tally.is_failed:  # `progress` may be left out
                tally.doubt(
                    f"the fault-free run did not end: {first.ended.reason}; so nothing "
                    "was put to the test"
                )
            return False
        if without_effects(first) and without_effects(baseline.second):
            tally.shown.clear()
            tally.doubt(f"the fault-free run was {first.ended.outcome} and {NO_EFFECT}")
        for reason in baseline.doubts:
            tally.doubt(
                f"the fault-free run does not repeat: {reason}. Common causes: random "
                "choices, timeouts, work left over from an earlier run"
            )
        return not tally.doubts

    def _doubt_store(self, baseline: Baseline) -> None:
        """A kill proves little where nothing is written that is seen."""
        seen = {address.operation.service for address in baseline.first.addresses}
        if why := untouched(self._loaded.manifest.store, seen):
            self._tally.doubt(f"{why}, so no write of it was put to the test")

    def _aim(self, baseline: Baseline) -> None:
        """Lay the wanted faults over the crossings that are there."""
        strategy = self._scenario.search.strategy
        if strategy is not Strategy.REPLAY:
            self._doubt_powerloss()
        if strategy in (Strategy.REPLAY, Strategy.CLOSURE, Strategy.TREADMILL):
            self._tally.seen = tuple(map(str, baseline.targets))
            return
        strikes = self._strikes.at(baseline.first, baseline.targets)
        self._tally.seen = tuple(dict.fromkeys(str(fault.at) for fault in strikes))
        for wanted in self._strikes.homeless(baseline.first, baseline.targets):
            self._tally.doubt(
                f"no crossing of the fault-free run can take {wanted}: it crosses "
                f"{', '.join(_services(baseline))}; see chaoskit doc faults"
            )

    def _doubt_powerloss(self) -> None:
        store = self._loaded.manifest.store
        kinds = {wanted.kind for wanted in self._scenario.wanted}
        if FaultKind.POWERLOSS in kinds and store not in (Store.FILES, Store.SQLITE):
            self._tally.doubt(
                "powerloss takes what an agent has not synced in CHAOSKIT_STATE_DIR, "
                f"and with the store {store} there is no such folder"
            )

    def _learn(
        self, baseline: Baseline, views: tuple[Views, Views], run_ids: tuple[str, str]
    ) -> Canon:
        """What means nothing in a world: learned where both runs surely agree."""
        first, second = views
        repeated = (
            str(address)
            for address in baseline.first.addresses
            if address.operation not in baseline.periodic
        )
        return learn(
            ((first[at], second[at]) for at in repeated if at in first.keys() & second),
            run_ids,
            self._since,
            self._scenario.volatile,
        )

    def _heed(self, steady: Steadiness) -> None:
        """Which crossings cannot be told apart, and which mean nothing.

        Closure restores every world, and what a replay names has to fire.
        """
        if self._scenario.search.strategy not in (
            Strategy.SWEEP,
            Strategy.TREADMILL,
            Strategy.SAMPLE,
        ):
            return
        self._beats.idle = steady.idle
        for operation in steady.mixed:
            self._tally.doubt(
                f"{operation} carries changes of the state and something periodic, "
                "such as a heartbeat: its crossings cannot be told apart from run to "
                "run, so not all of them were struck. Give the heartbeat a key of its "
                "own, or use the strategy closure"
            )

    def _explorer(self, clean: Visited) -> Explorer:
        search, strikes = self._scenario.search, self._strikes
        match search.strategy:
            case Strategy.SWEEP:
                return Sweep(strikes, search.depth)
            case Strategy.TREADMILL:
                limit = self._loaded.manifest.contract.max_attempts
                self._tally.treadmill = Treadmill(self._scenario.wanted, limit)
                return self._tally.treadmill
            case Strategy.SAMPLE:
                return Sample(strikes, search.seed, search.trials)
            case Strategy.REPLAY:
                named = tuple(map(Schedule.parse, search.schedules))
                return Replay(self._options.schedules or named, self._options.times)
            case Strategy.CLOSURE:
                assert self._canon is not None
                wanted = {kind for kind, _ in self._scenario.wanted}
                deep = self._options.deep
                closure = Closure(self._canon, clean.looks, search.trials, wanted, deep)
                self._tally.closure = closure
                return closure

    def _explore(self, explorer: Explorer, baseline: Baseline) -> None:
        self._stage = self._scenario.search.strategy.value
        queue = deque(self._within_limit(explorer.first(baseline)))
        while queue:
            visited = self._without_broken_worlds(self._take(queue.popleft()))
            queue.extend(self._within_limit(explorer.after(visited)))
            if self._is_worth_a_try(visited.trial):
                queue.append(self._submit(visited.visit))
        for pending in [*self._within_limit(self._shorter())]:
            self._take(pending)
        self._weigh()

    def _is_worth_a_try(self, trial: Trial) -> bool:
        """Whether to run a schedule once more, of which a fault found nothing."""
        if not self._tally.tries_again or not is_a_race(trial):
            return False
        self._tries[trial.schedule] += 1
        return self._tries[trial.schedule] < TRIES_MAX

    def _shorter(self) -> Iterator[Visit]:
        """What a treadmill has found, with no kill that came after it."""
        mill = self._tally.treadmill
        trials = {trial.name: trial for trial in mill.walked} if mill else {}
        found = (each for each in self._tally.shown.values() if each.trial in trials)
        cut = (so_far(trials[each.trial], each.finding) for each in found)
        known = {trial.schedule for trial in trials.values()}
        yield from (Visit(each) for each in dict.fromkeys(cut) if each not in known)

    def _weigh(self) -> None:
        """What the search as a whole gives reason to doubt."""
        tally, closure = self._tally, self._tally.closure
        for schedule, trial in self._missed.items():
            if schedule not in tally.struck_whole:
                self._hint(trial)
        if self._left_over:
            tally.doubt(
                f"{self._left_over} more schedules were due and not run: the search "
                f"stops after {self._scenario.search.trials} trials"
            )
        if closure is not None and not closure.ended:
            tally.doubt(closure.why_endless())
        if tally.treadmill is not None and not tally.is_failed:
            for reason in tally.treadmill.why_short():
                tally.doubt(reason)
        if self._beyond:
            tally.note(f"{self._beyond} {NOT_FOLLOWED}")
        tested = tally.fired if closure is None else self._searched
        if not tested and not tally.doubts:
            tally.doubt(NOTHING_STRUCK)

    def _within_limit(self, visits: Iterable[Visit]) -> Iterator[Pending]:
        """Submit visits until the search has run as many trials as it may."""
        for visit in visits:
            if self._searched == self._scenario.search.trials:
                self._left_over += 1
                continue
            self._searched += 1
            yield self._submit(visit)

    def _without_broken_worlds(self, visited: Visited) -> Visited:
        """Leave out worlds in which a promise is already broken.

        What follows from such a world shows the same again, with more kills; where
        each kill does one more effect it would never end.
        """
        sound = tuple(look for look in visited.looks if self._is_sound(look))
        self._beyond += len(visited.looks) - len(sound)
        return replace(visited, looks=sound)

    def _is_sound(self, look: Look) -> bool:
        state = look.state
        cut = RunEnded(life=state.life, seq=len(state.prefix), outcome="cut")
        trial = Trial("", state.run_id, state.path, (*state.prefix, cut))
        causes = {finding.cause for finding in self._judge(trial).findings}
        return causes <= self._causes_of_clean_run

    def _confirm(self) -> None:
        """Show each finding again, unless the two clean runs have shown it twice."""
        self._stage = "confirming"
        pending = {
            cause: self._submit(Visit(shown.schedule), self._confirming_name())
            for cause, shown in self._tally.shown.items()
            if shown.schedule.faults or shown.trials == 1
        }
        for cause, second in pending.items():
            self._compare(cause, self._result(second).trial)

    def _confirming_name(self) -> str:
        return f"{CONFIRMING}{self._submitted:04}"

    def _compare(self, cause: Cause, second: Trial) -> None:
        """Whether a second run of a finding's schedule shows it again."""
        shown = self._tally.shown[cause]
        judgement = self._judge(second)
        self._keep(second, judgement)
        findings = judgement.findings
        again = next((each for each in findings if each.cause == cause), None)
        if again is None:
            self._not_again(cause, shown)
        else:
            confirmed = replace(shown, finding=again, trial=second.name)
            self._tally.shown[cause] = confirmed

    def _not_again(self, cause: Cause, shown: Shown) -> None:
        """A finding that a second run did not show: seen for real, or not at all."""
        tally, requirement = self._tally, shown.finding.requirement
        if tally.closure is None and requirement not in MAY_REST_ON_TIME:
            tally.shown[cause] = replace(shown, again=False)
            return
        del tally.shown[cause]
        where = "in a restored world" if tally.closure else "at a time limit"
        tally.doubt(
            f"{requirement} was broken {where}, and running "
            f"{shown.schedule or 'the scenario'} {NOT_SHOWN_AGAIN}"
        )

    def _submit(
        self, visit: Visit, name: str = "", watching: Watching | None = None
    ) -> Pending:
        self._submitted += 1
        self._tell()
        if visit.origin is not None:
            assert self._tally.closure is not None
            watching = Watching(
                self._canon,
                self._tally.closure.known,
                snapshots=True,
                thorough=self._options.thorough,
            )
        plan = Plan(
            name=name or f"{self._submitted:04}",
            visit=visit,
            scenario=self._scenario,
            manifest=self._loaded.manifest,
            agent_folder=self._loaded.manifest_path.parent.resolve(),
            run_id=f"run-{secrets.token_hex(4)}",
            canon=self._canon,
            watching=watching,
            fresh=self._fresh,
        )
        return self._pool.submit(plan)

    def _result(self, pending: Pending) -> Visited:
        visited = pending.result()
        self._tally.trials += 1
        self._tell()
        return visited

    def _take(self, pending: Pending) -> Visited:
        """Wait for a trial, judge it, and add it to what is known."""
        visited = self._without_late_beats(self._result(pending))
        judgement = self._judge(visited.trial)
        self._tally.add(visited.trial, judgement)
        self._keep(visited.trial, judgement)
        note(self._options.out, visited.trial, judgement)
        if visited.trial.unfired:
            self._missed[visited.trial.schedule] = visited.trial
        return visited

    def _without_late_beats(self, visited: Visited) -> Visited:
        """Excuse a fault at a beat that did not come.

        So is one at what came after a beat that came at another moment than before.
        """
        late = self._beats.excused(visited.trial)
        self._tally.late_periodic |= self._beats.late
        if not late:
            return visited
        unfired = tuple(f for f in visited.trial.unfired if f not in late)
        return replace(visited, trial=replace(visited.trial, unfired=unfired))

    def _hint(self, trial: Trial) -> None:
        """What a schedule that never fired may have been meant to say."""
        baseline = self._tally.baseline
        reached = self._tally.seen if baseline else ()
        for fault in trial.unfired:
            if fault.at in trial.addresses:
                if trial.schedule.faults.count(fault) > 1:
                    self._tally.note(_REACHED_ONCE.format(fault=fault, at=fault.at))
                continue
            others = (place for place in reached if place != str(fault.at))
            if guess := did_you_mean(str(fault.at), others):
                self._tally.note(f"{fault.at} was not reached; {guess}")

    def _judge(self, trial: Trial) -> Judgement:
        return judge(trial, self._scenario, self._loaded.manifest, self._golden)

    def _keep(self, trial: Trial, judgement: Judgement) -> None:
        is_held = self._golden is not NOTHING
        keep(self._options.out, trial, judgement, golden=is_held)

    def _tell(self) -> None:
        tally = self._tally
        now = Progress(tally.trials, self._submitted, len(tally.shown), self._stage)
        self._listener(now)


_REACHED_ONCE = "{fault} is scheduled more than once; {at} was reached once only"


def _services(baseline: Baseline) -> list[str]:
    return sorted({address.operation.service for address in baseline.targets})


def _views(visited: Visited) -> Views:
    return {look.address: look.state.view for look in visited.looks}
