"""What is read of a life's output: log lines, last words, the final answer."""

import json

import pytest

from chaoskit.agents.output import LINE_LENGTH_MAX, TAIL_LINES_MAX, Output, log_entry
from chaoskit.gate import Blots
from chaoskit.model.manifest import LogNames

LINE = '{"event": "run.start"}'


@pytest.fixture
def output(tmp_path):
    """The files of a life that has written nothing yet."""
    return Output(tmp_path / "out", tmp_path / "err", LogNames())


def write(path, text):
    """Add to a file, byte for byte."""
    with path.open("ab") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


def read(output, *, ended=False):
    """New log lines, in short."""
    lines = output.new_log_lines(ended=ended)
    return [(line.stream, line.line, line.entry) for line in lines]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "starting up",
        "[1, 2]",
        '"event"',
        "{",
        '{"event": ',
        '{"step": 1}',
        "{" * 100_000,
        "42",
    ],
)
def test_what_is_no_log_line(text):
    """Only objects with an event or a level are."""
    assert log_entry(text, LogNames()) is None


def test_the_manifest_names_the_fields():
    """An agent may call its event and its level what it likes."""
    names = LogNames(event="msg", level="severity")
    assert log_entry('{"msg": "run.start"}', names) == {"msg": "run.start"}
    assert log_entry('  {"severity": "info"}\r', names) == {"severity": "info"}
    assert log_entry(LINE, names) is None


def test_the_files_are_there_before_the_life(output):
    """A life that writes nothing can be read all the same."""
    assert read(output, ended=True) == []
    assert output.tail() == ()
    assert output.answer() is None


def test_each_line_is_read_once_with_its_number(output):
    """Numbers count every line of the file, as an editor does."""
    write(output.stderr, f"Traceback\n\n{LINE}\n")
    assert read(output) == [("stderr", 3, {"event": "run.start"})]
    assert read(output) == []
    write(output.stderr, f"more\n{LINE}\n")
    assert read(output) == [("stderr", 5, {"event": "run.start"})]


def test_a_partial_line_waits_for_its_end(output):
    """Half a line is no line, until the life has ended."""
    write(output.stderr, LINE[:9])
    assert read(output) == []
    write(output.stderr, LINE[9:])
    assert read(output) == []
    write(output.stderr, "\n" + LINE)
    assert read(output) == [("stderr", 1, {"event": "run.start"})]
    assert read(output, ended=True) == [("stderr", 2, {"event": "run.start"})]


def test_a_character_may_be_cut_in_two(output):
    """Bytes are put together before they are read as text."""
    line = '{"event": "größe"}\n'.encode()
    cut = line.index("ö".encode()) + 1
    write(output.stderr, line[:cut])
    assert read(output) == []
    write(output.stderr, line[cut:])
    assert read(output) == [("stderr", 1, {"event": "größe"})]


def test_both_streams_are_read(output):
    """Standard error first; each has numbers of its own."""
    write(output.stdout, f"hello\n{LINE}\n")
    write(output.stderr, f"{LINE}\n")
    assert [(stream, line) for stream, line, _ in read(output)] == [
        ("stderr", 1),
        ("stdout", 2),
    ]


def test_only_a_newline_ends_a_line(output):
    """Bars that go back with a carriage return are one line, as in an editor."""
    write(output.stderr, f"10 %\r20 %\r100 %\n{LINE}\r\n")
    assert read(output) == [("stderr", 2, {"event": "run.start"})]


def test_bytes_that_are_no_text_harm_nothing(output):
    """They are shown as escapes."""
    write(output.stderr, b"\xff\xfe\n" + LINE.encode() + b"\n")
    assert read(output) == [("stderr", 2, {"event": "run.start"})]
    assert output.tail()[0] == r"\xff\xfe"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Paid.\n", "Paid."),
        ("Paid.", "Paid."),
        ("Thinking\nPaid.\n\n  \n", "Paid."),
        ("  Paid. \r\n", "Paid."),
        (f"Paid.\n{LINE}\n", "Paid."),
        (f"{LINE}\n", None),
        ('{"paid": true}\n', '{"paid": true}'),
        ("one\u2028two\x85three\x0bfour\n", "one\u2028two\x85three\x0bfour"),
    ],
)
def test_the_final_answer(output, text, answer):
    """The last line of standard output that is neither empty nor a log line."""
    write(output.stderr, "not me\n")
    write(output.stdout, text)
    assert output.answer() == answer


def test_a_log_line_with_strange_separators_is_no_answer(output):
    """JSON may hold them raw; half of a log line is not what the agent said."""
    write(output.stdout, "Paid.\n")
    entry = {"event": "run.end", "text": "one\u2028two\x85three"}
    write(output.stdout, json.dumps(entry, ensure_ascii=False) + "\n")
    assert output.answer() == "Paid."
    assert read(output) == [("stdout", 2, entry)]


def test_the_answer_may_lie_far_back(output):
    """Any amount of log lines may follow it, and it may be of any length."""
    answer = "x" * 200_000
    write(output.stdout, f"{answer}\n")
    write(output.stdout, f"{LINE}\n" * 10_000)
    assert output.answer() == answer


def test_the_tail_is_short(output):
    """The last lines only, and not all of a long one."""
    write(output.stderr, "".join(f"line {n}\n" for n in range(1000)))
    write(output.stderr, "x" * 10_000)
    tail = output.tail()
    assert len(tail) == TAIL_LINES_MAX
    assert tail[-2:] == ("line 999", "x" * LINE_LENGTH_MAX)


def test_the_tail_controls_no_terminal(output):
    """Escape sequences and other control characters are spelt out."""
    write(output.stderr, "\x1b[31mred\x1b[0m\a\tend\n")
    assert output.tail() == (r"\x1b[31mred\x1b[0m\x07\tend",)


def test_the_tail_is_of_standard_output_where_there_is_nothing_else(output):
    """An agent may say its last words there."""
    write(output.stdout, "out\n")
    assert output.tail() == ("out",)
    write(output.stderr, "err\n")
    assert output.tail() == ("err",)


def test_a_secret_is_blotted_out_of_both_files(output):
    """Wherever it stands; the rest stays, byte for byte."""
    write(output.stderr, b"\xffkey=s3cret s3cret\n")
    write(output.stdout, b"s3cre t\n")
    output.blot(Blots({"s3cret": "[canary]"}))
    assert output.stderr.read_bytes() == b"\xffkey=[canary] [canary]\n"
    assert output.stdout.read_bytes() == b"s3cre t\n"
