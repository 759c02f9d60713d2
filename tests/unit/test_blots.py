"""Which variables of an environment are secrets, and what stays to be read."""

import html
import json
import shlex
from urllib.parse import quote, quote_plus

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
    [
        *("DB_PASS", "MAIL_PWD", "SENTRY_DSN", "SIGNING_PRIVATE", "COOKIE_JAR"),
        *("API_KEY", "GH_PAT", "PAT", "PAT_OF_CI", "SLACK_WEBHOOK_URL", "PG_CONN"),
        "AZ_CONNECTION_STRING",
    ],
)
def test_a_name_says_that_it_is_a_secret(blotted, name):
    assert blotted(f"got {SECRET}.", **{name: SECRET}) == f"got [{name}]."


@pytest.mark.parametrize("name", ["SOME_PATH", "PATTERN", "CONNECT_TIMEOUT"])
def test_a_word_within_another_one_says_nothing(blotted, name):
    assert blotted(SECRET, **{name: SECRET}) == SECRET


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


# --- a password inside a value --------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "password"),
    [
        ("postgres://app:hunter22@db.test/x", "hunter22"),
        ("postgres://app:hunter2%40long@db.test/x", "hunter2%40long"),
        ("postgres://app:hunter2%40long@db.test/x", "hunter2@long"),
        ("postgres://app:hunter@22@db.test/x", "hunter@22"),
        ("redis://:hunter22@a.test,redis://:s3cret-2@b.test", "s3cret-2"),
        ("postgresql://db.test/x?user=u&password=hunter22", "hunter22"),
        ("postgresql://db.test/x?password=hunter%2B22&a=b", "hunter+22"),
        ("host=db user=u password='hunter 22'", "hunter 22"),
        ("Server=db;Pwd=hunter22;Timeout=30", "hunter22"),
        ("db.test:6380,password=hunter22,ssl=True", "hunter22"),
        ("https://hooks.test/?client_SECRET=hunter22#top", "hunter22"),
        ("https://hooks.test/?access_token=hunter22", "hunter22"),
    ],
)
def test_a_password_is_blotted_by_itself(blotted, value, password):
    """Whatever the variable is called, from 8 characters on."""
    assert blotted(f"as {password}.", STORE=value) == "as [STORE]."
    assert blotted(f"as {password}.", {"STORE": value}) == "as [STORE]."


@pytest.mark.parametrize(
    "password", ["hunter2", "postgres", "password", "20261130", "kill_one"]
)
def test_a_password_that_might_be_any_word_stays(blotted, password):
    """Or a number, or what stands in every history: nobody could read one."""
    text = f"0:postgres.query#1:after password {password}"
    assert blotted(text, STORE=f"https://host.test/?token={password}") == text


def test_a_password_that_the_scenario_says_is_none(blotted):
    url = "https://me:hunter22@host.test"
    assert blotted("for hunter22", STORE=url, goal="hunter22") == "for hunter22"


@pytest.mark.parametrize(
    "escaped",
    [
        *(quote, quote_plus, html.escape, json.dumps),
        *(lambda text: quote(text, safe=""), lambda text: quote(text).lower()),
        lambda text: html.escape(text, quote=False),
        lambda text: json.dumps(text, ensure_ascii=False),
        lambda text: html.escape(text).replace("&#x27;", "&#39;"),
        lambda text: repr(text)[1:-1],
        *(shlex.quote, lambda text: text.replace("'", r"'\''")),
    ],
)
def test_an_escaped_secret_is_the_secret(blotted, escaped):
    """As in a URL, on a page, in JSON, in Python, in a shell."""
    secret = "ü&<long>'s/\"cr et+?"
    said = blotted(f"got {escaped(secret)}", API_TOKEN=secret)
    assert said.replace('"', "").replace("'", "") == "got [API_TOKEN]"
