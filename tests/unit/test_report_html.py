"""`report.html`: what it says first, what it draws, and that nothing in it can run."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaoskit.model.history import ClockLeapt, StatusSeen
from chaoskit.model.report import Crossings, Report, Shown
from chaoskit.model.schedule import Schedule
from chaoskit.model.verdict import Finding, Severity
from chaoskit.report import as_html
from chaoskit.report.drawing import Drawing
from chaoskit.report.html_report import DRAWINGS_MAX, FAULTS_MAX, STORIES_MAX
from chaoskit.report.page import TEXT_MAX, _templates
from chaoskit.report.timeline import ROWS_MAX, rows

SCHEDULE = Schedule.parse("kill@0:tools.pay[o-1]#1:after")
TWICE = Finding(
    "effects", "effects/once-across-kill", "Paid twice.", 1, 2, "pay", (4, 9)
)
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=40)
HARMLESS = {
    *("html", "head", "meta", "title", "style", "body", "header", "main", "section"),
    *("h1", "h2", "h3", "div", "p", "span", "strong", "dl", "dt", "dd", "ul", "ol"),
    *("li", "a", "article", "pre", "details", "summary", "table", "thead", "tbody"),
    *("tr", "th", "td", "svg", "rect", "text", "line", "path", "circle", "tspan"),
}
INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def report(*findings, schedule=SCHEDULE, **more):
    fields = {"strategy": "sweep", "seed": 0, "scenario_path": "s.yaml", **more}
    named = {"chaoskit": "1", "scenario": "s", "agent": "a", "store": "redis"}
    shown = tuple(Shown(each, schedule, "0007") for each in findings)
    return Report(**{**named, **fields}, findings=shown)


class Reader(HTMLParser):
    """The elements, attributes and words of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.words, self.open = [], [], "", []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_data(self, data):
        self.words += data


@pytest.fixture
def twice(told):
    """A call that is killed after it applied, and applied once more."""
    story = told().ask(0).call("pay", "k-1", order="o-1").killed().resume()
    story.call("pay", "k-2", order="o-1").ask(1, "0.0").done()
    return story.trial()


def applied(trial):
    return tuple(event.seq for event in trial.history if event.kind == "applied")


# --- what it says --------------------------------------------------------------------


def test_a_page_reads_no_file_when_a_campaign_ends(monkeypatch):
    """By then another version may have been installed, with other names in it."""

    def gone(path, *_more, **_words):
        raise FileNotFoundError(path)

    _templates.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr("builtins.open", gone)
        written = as_html(report(TWICE), {})
    assert "Paid twice." in written


@pytest.mark.parametrize(
    ("made", "word"),
    [
        (report(), "✓ Pass"),
        (report(TWICE), "✕ Fail"),
        (report(doubts=("it never fired",)), "? Inconclusive"),
        (report(replace(TWICE, severity=Severity.SHOULD)), "✓ Pass"),
    ],
)
def test_the_verdict_comes_first(made, word):
    words = Reader(as_html(made, {})).words
    body = words[words.index("}\n\n") :].split("\n")
    assert next(line for line in body if line.strip() not in ("", "}", "s")) == word


def test_a_story_has_all_that_is_needed_to_see_it_again():
    words = Reader(as_html(report(TWICE), {})).words
    for part in ("effects/once-across-kill", "Paid twice.", str(SCHEDULE)):
        assert part in words
    assert f"chaoskit replay s.yaml '{SCHEDULE}'" in words


def test_what_was_tried_is_told():
    crossings = Crossings(4, 3, ("0:llm.chat#1:after",))
    made = report(crossings=crossings, states=7, depth=2, notes=("no log",))
    words = Reader(as_html(made, {})).words
    assert "3 of 4 edges" in words
    assert "0:llm.chat#1:after" in words
    assert "7, up to 2 kills deep" in words
    assert "no log" in words


def test_a_long_schedule_is_cut_to_its_end_and_the_command_has_it_whole():
    faults = [f"kill@{n}:llm.chat#1:after" for n in range(10 * FAULTS_MAX)]
    schedule = Schedule.parse(" + ".join(faults))
    words = Reader(as_html(report(TWICE, schedule=schedule), {})).words
    assert f"{9 * FAULTS_MAX} more before these" in words
    assert words.count("kill@0:llm.chat") == 1  # in the command
    assert " + ".join(faults) in words
    assert words.count(faults[-1]) == 2


# --- what it draws -------------------------------------------------------------------


def test_the_trial_is_drawn_and_what_the_finding_rests_on_is_marked(twice):
    first, second = applied(twice)
    drawn = rows(twice.history, (first, second))
    marked = [(row.seq, row.text, row.more) for row in drawn if row.marked]
    assert marked == [
        (first, "pay(order='o-1')", "key k-1: applied"),
        (second, "pay(order='o-1')", "key k-2: applied AGAIN: 2 times now"),
    ]


def test_a_kill_holds_the_reply_and_ends_its_life(twice):
    drawn = rows(twice.history, ())
    held, struck = drawn[2:4]
    assert (held.passed, held.answered) == (True, False)
    assert struck.text == "kill after tools.pay[o-1]#1 was done, its reply held"
    assert not any(row.text.startswith("life 0 is killed") for row in drawn)
    drawing = Drawing(drawn)
    end = next(bar for bar in drawing.bars if bar.life == 0)
    assert end.y + end.height == drawing.marks[3].y


def test_a_message_that_was_held_before_did_nothing(told):
    story = told().deliver("pay", order="o-1").killed().resume().done()
    drawn = rows(story.trial().history, ())
    assert (drawn[1].passed, drawn[1].effect) == (False, False)
    assert drawn[2].text.startswith("kill before tools.pay[o-1]#1")


def test_lives_at_the_same_time_stand_beside_each_other(told):
    story = told().cross("redis", "get", "x").start("resume").cross("redis", "get", "x")
    story.end("done").continued(0).cross("redis", "get", "y").end("done").over("done")
    columns = {bar.life: bar.x for bar in Drawing(rows(tuple(story.events), ())).bars}
    assert columns[0] != columns[1]


def test_lives_after_one_another_stand_below_each_other(twice):
    assert len({bar.x for bar in Drawing(rows(twice.history, ())).bars}) == 1


def test_a_leap_of_the_clock_is_drawn_between_what_it_parts(told):
    story = told().ask(0).add(ClockLeapt(life=-1, seconds=-2.5)).ask(1).done()
    drawn = rows(story.trial().history, ())
    assert [r.text for r in drawn if "clock" in r.text] == ["the clock leapt by -2.5 s"]
    bars = Drawing(rows(tuple(story.events), ())).bars
    seen = told().ask(0).add(StatusSeen(life=-1, status="running")).ask(1).done()
    assert len(bars) == len(Drawing(rows(tuple(seen.events), ())).bars)


def test_log_lines_are_drawn_where_a_finding_rests_on_them(told):
    story = told().log("run.start").log("run.end").end("done").over("done")
    assert [row.text for row in rows(tuple(story.events), (2,)) if row.marked] == [
        "logs on stderr"
    ]
    assert not any("logs" in row.text for row in rows(tuple(story.events), ()))


def test_a_long_history_is_cut_to_what_matters_and_says_so(told):
    story = told()
    for _ in range(5 * ROWS_MAX):
        story.cross("redis", "get", "x")
    story.call("pay", order="o-1")
    for _ in range(5 * ROWS_MAX):
        story.cross("redis", "get", "x")
    trial = story.done().trial()
    drawn = rows(trial.history, applied(trial))
    kept = [row for row in drawn if row.kind != "gap"]
    left = [int(row.text.split()[3]) for row in drawn if row.kind == "gap"]
    assert len(kept) == ROWS_MAX
    assert len(kept) + sum(left) == 10 * ROWS_MAX + 6
    assert [row.marked for row in kept].count(True) == 1


def test_a_finding_without_its_history_has_no_drawing(twice):
    assert "<svg" not in as_html(report(TWICE), {})
    assert "<svg" in as_html(report(TWICE), {"0007": twice.history})


def test_of_many_findings_the_first_are_drawn(twice):
    many = [replace(TWICE, subject=str(n)) for n in range(STORIES_MAX + 5)]
    page = as_html(report(*many), {"0007": twice.history})
    assert page.count("<svg") == DRAWINGS_MAX
    assert page.count("<article") == STORIES_MAX
    assert "5 more findings are in report.json" in page


# --- what it must not do -------------------------------------------------------------


def test_it_needs_no_other_file_runs_nothing_and_is_the_same_each_time(twice):
    page = as_html(report(TWICE), {"0007": twice.history})
    assert page == as_html(report(TWICE), {"0007": twice.history})
    reader = Reader(page)
    assert set(reader.tags) <= HARMLESS
    names = {name for name, _ in reader.attributes}
    assert not {name for name in names if name.startswith("on") or name == "src"}
    links = [value for name, value in reader.attributes if name == "href"]
    assert all(value.startswith("#") for value in links)
    assert "url(" not in page
    assert "http" not in re.sub(r"http-equiv|http://www\.w3\.org/2000/svg", "", page)


@settings(max_examples=40, deadline=None)
@given(ANY_TEXT, ANY_TEXT, ANY_TEXT)
def test_whatever_an_agent_says_stays_words(said, other, third):
    """Scripts, control characters, halves of surrogate pairs, text that turns round."""
    tag = "\"'><script>alert(1)</script>"
    hostile = replace(
        TWICE,
        message=f"{said}{tag}",
        expected={f"{other}{tag}": said},
        observed=f"{third}{tag}",
        subject=f"{said}{tag}",
    )
    made = report(hostile, notes=(f"{other}{tag}",), doubts=(f"{third}{tag}",))
    page = as_html(made, {})
    page.encode()
    assert set(Reader(page).tags) <= HARMLESS
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page
    )


@settings(max_examples=25, deadline=None)
@given(ANY_TEXT, ANY_TEXT)
def test_whatever_an_agent_sends_can_be_drawn(told, said, key):
    tag = "</title></svg><script>alert(1)</script>"
    story = (
        told()
        .call("pay", f"{key}{tag}", order=f"{said}{tag}")
        .crashed(tail=(f"{said}{tag}",))
    )
    page = as_html(report(TWICE), {"0007": story.over("failed", said).trial().history})
    page.encode()
    assert set(Reader(page).tags) <= HARMLESS


def test_a_huge_text_is_cut_and_says_so(told):
    huge = "x" * (50 * TEXT_MAX)
    story = told().call("pay", order=huge).done()
    made = report(replace(TWICE, message=huge, observed=huge))
    page = as_html(made, {"0007": story.trial().history})
    assert len(page) < 12 * TEXT_MAX
    assert f"({49 * TEXT_MAX} more characters)" in page
