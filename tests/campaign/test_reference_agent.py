"""The reference agent on every store, in one shot and with two workers.

In full with ``--full``; without it each campaign walks a sample of its schedules.
"""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STORES = ("redis", "redis-log", "sqlite", "postgres", "files")
# Each with the faults of its service that the README says it survives.
FAULTS = {
    "redis": ("restart", "rollback", "expire", "full", "error", "duplicate"),
    "redis-log": ("restart", "rollback", "expire", "full", "error", "duplicate"),
    "sqlite": ("powerloss", "tear", "full", "error"),
    "postgres": ("restart", "full", "error", "duplicate"),
    "files": ("powerloss", "tear", "full", "error"),
}
OF_ANY = ("kill_one", "term", "int", "pause", "drop_reply", "refuse", "delay", "skew")


@pytest.fixture
def reference(chaoskit, request, tmp_path):
    """Run a scenario with the agent or the fleet on a store."""

    def run(scenario, form, store, *words, trials, lease=None):
        log = store == "redis-log"
        manifest = ROOT / "reference_agent" / f"{form}_{'log' if log else 'fork'}.yaml"
        if lease:
            text = manifest.read_text()
            brief = text.replace(" worker, --store", f" worker, {lease}, --store")
            assert brief != text
            manifest = tmp_path / "brief.yaml"
            manifest.write_text(brief)
        kept = ("--store", "redis" if log else store)
        if request.config.getoption("--full"):
            size = ("--trials", "10000")
        else:
            size = ("--strategy", "sample", "--trials", str(trials))
        return chaoskit(
            *("run", ROOT / "scenarios" / f"{scenario}.yaml"),
            *("--agent", str(manifest)),
            *(*kept, *size, *words),
        )

    return run


@pytest.fixture
def scenarios(request):
    """Both in full; without it the shorter one."""
    full = request.config.getoption("--full")
    return ("send_mail", "book_flight") if full else ("send_mail",)


@pytest.mark.parametrize("store", STORES)
def test_kills_are_survived_in_one_shot(reference, scenarios, store):
    for scenario in scenarios:
        result = reference(scenario, "agent", store, trials=10)
        assert result.code == 0, result.stdout + result.stderr
        assert result.report["kills"] >= 10


@pytest.mark.parametrize("store", STORES)
def test_kills_are_survived_by_two_workers(reference, scenarios, store):
    for scenario in scenarios:
        result = reference(scenario, "worker", store, trials=4)
        assert result.code == 0, result.stdout + result.stderr
        # A poll on which a kill was to come may not come again; it is named then.
        assert result.report["kills"] >= (2 if result.report["periodic"] else 4)


@pytest.mark.parametrize("store", STORES)
def test_every_other_fault_is_survived(reference, store):
    """What only warns is a late call that no agent can prevent."""
    words = [word for f in (*FAULTS[store], *OF_ANY) for word in ("--fault", f)]
    size = 6 if store == "sqlite" else 16  # it has ten times the crossings
    result = reference("send_mail", "agent", store, *words, trials=size)
    assert result.code == 0, result.stdout + result.stderr
    assert set(result.requirements) <= {"effects/once-beyond-its-reach"}


# One that is stopped inside SQLite's lock keeps all others from writing.
@pytest.mark.parametrize("store", [name for name in STORES if name != "sqlite"])
def test_a_worker_that_was_stopped_past_its_lease_is_fenced_off(reference, store):
    """Stopped at any crossing; the other one takes over when the lease has run out."""
    lease, words = '--lease-seconds, "5"', ("--fault", "pause")
    result = reference("send_mail", "worker", store, *words, trials=2, lease=lease)
    assert result.code == 0, result.stdout + result.stderr
    assert set(result.requirements) <= {"effects/once-beyond-its-reach"}


@pytest.mark.parametrize("scenario", ["approve_payment", "remind_later"])
@pytest.mark.parametrize("form", ["agent", "worker"])
def test_gates_and_waits_survive_kills(reference, scenario, form):
    store = {"agent": "files", "worker": "postgres"}[form]
    result = reference(scenario, form, store, trials=5)
    assert result.code == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("manifest", "scenario"),
    [
        ("agent_mcp", "book_flight"),
        ("agent_smtp", "send_mail_smtp"),
        ("agent_stream", "book_flight"),
    ],
)
def test_tools_over_mcp_mail_over_smtp_and_streamed_replies_survive_too(
    chaoskit, request, manifest, scenario
):
    full = request.config.getoption("--full")
    size = () if full else ("--strategy", "sample", "--trials", "10")
    faults = [w for f in ("kill", "drop_reply", "tear") for w in ("--fault", f)]
    result = chaoskit(
        *("run", ROOT / "scenarios" / f"{scenario}.yaml"),
        *("--agent", str(ROOT / "reference_agent" / f"{manifest}.yaml")),
        *(*size, *faults),
    )
    assert result.code == 0, result.stdout + result.stderr


def test_a_blind_call_under_a_rollback_is_what_it_does_not_claim(
    chaoskit, write_scenario
):
    """The README says so: the intent was forgotten, and nobody can be asked.

    It is a warning, since no agent can do better on such a store.
    """
    agent = ROOT / "reference_agent" / "agent_fork.yaml"
    scenario = write_scenario(
        llm={
            "script": [{"call": {"send_fax": {"to": "a", "body": "b"}}}, {"say": "."}]
        },
        tools={"send_fax": "blind"},
    )
    schedule = (
        "rollback(2)@0:redis.eval[agent:checkpoint:{run}]#4:after"
        " + kill@0:tools.send_fax[a]#1:after"
    )
    result = chaoskit("replay", scenario, schedule, "--agent", str(agent))
    assert result.requirements == ["effects/once-beyond-its-reach"], result.stdout
    assert "was applied twice" in result.report["findings"][0]["message"]
