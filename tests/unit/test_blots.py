"""Which variables of an environment are secrets, and what stays to be read."""

import pytest

from chaoskit.trial import blots

SECRET = "correct-horse-battery-staple"


@pytest.fixture
def blotted(make_scenario, make_manifest, monkeypatch):
    """What is written of a text beside these variables of the machine."""

    def write(text, env=None, goal="Pay", **variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        scenario = make_scenario([("pay", {"order": goal})], tools={"pay": "keyed"})
        manifest = make_manifest().model_copy(update={"env": env or {}})
        return blots(manifest, scenario).text(text)

    return write


@pytest.mark.parametrize(
    "name",
    ["DB_PASS", "MAIL_PWD", "SENTRY_DSN", "SIGNING_PRIVATE", "COOKIE_JAR", "API_KEY"],
)
def test_a_name_says_that_it_is_a_secret(blotted, name):
    assert blotted(f"got {SECRET}.", **{name: SECRET}) == f"got [{name}]."


def test_the_folder_that_a_shell_is_in_is_none(blotted):
    assert blotted(SECRET, PWD=SECRET, OLDPWD=SECRET) == SECRET


def test_a_url_with_somebody_s_name_in_it_is_one(blotted):
    """The whole of it, and that name with its password; no other URL."""
    url = "amqp://agent:hunter2-hunter2@queue.test/1"
    said = blotted(f"{url} and agent:hunter2-hunter2", BROKER=url)
    assert said == "[BROKER] and [BROKER]"
    plain = "https://docs.example.test/a@b"
    assert blotted(plain, DOCS=plain) == plain


def test_of_the_manifest_s_own_variables_each_is_one(blotted):
    """But for what is short, or a number, or said by the scenario, or by histories."""
    env = {"REGION": SECRET, "MODE": "loud", "LIMIT": "100000000000"}
    assert blotted(f"{SECRET} loud", env) == "[REGION] loud"
    assert blotted("100000000000", env) == "100000000000"
    assert blotted(SECRET, env, goal=SECRET) == SECRET
    word = {"FIELD": "checkpoint_id"}
    assert blotted("checkpoint_id", word) == "checkpoint_id"
