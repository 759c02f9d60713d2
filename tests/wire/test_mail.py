"""Which call of the script a mail is, and what hostile mail does not break."""

from email.message import EmailMessage

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.model.scenario import Call
from chaoskit.wire.mail import Mail, scripted

ANN, BOB = "ann@example.org", "bob@example.org"


def mail(subject="", body="", to=(ANN,), sender="agent@example.org", subtype="plain"):
    message = EmailMessage()
    message["From"] = f"The agent <{sender}>"
    message["Reply-To"] = "desk@example.org"
    message["Subject"] = subject
    message.set_content(body, subtype=subtype)
    return Mail("bounces@example.org", tuple(to), message.as_bytes())


def call(**args):
    return Call(tool="send_mail", args=args)


FOUND = [
    (mail(), call(to=ANN)),
    (mail(to=[ANN.upper()]), call(recipient=[ANN])),
    (mail(to=[BOB, ANN]), call(to=f"Ann <{ANN}>, {BOB}")),
    (mail(to=[BOB, ANN]), call(to=ANN, cc=[BOB])),
    (mail("Booked"), call(subject="Booked")),
    (mail("Re: Booked again"), call(subject="Booked")),
    (mail("Gebucht für Änne"), call(subject="für Änne")),
    (mail("x", "Dear Ann,\n\nyour seat\nis 12A."), call(body="your seat is 12A.")),
    (mail("x" * 200, "y " * 200), call(subject="x" * 200, body="y " * 200)),
    (mail("o-1", "42000 cents"), call(order="o-1", cents=42000)),
    (mail("a", "<p>A <b>seat</b> &amp; bed</p>", subtype="html"), call(b="seat & bed")),
    (mail("a 1"), call(nested={"x": ["a", {"y": 1}]}, flag=True, none=None)),
    (mail(), call(to=ANN, **{"from": "bounces@example.org"})),
    (mail(), call(sender="agent@example.org", reply_to="desk@example.org")),
    (mail(), call()),
]


@pytest.mark.parametrize(("sent", "asked"), FOUND)
def test_a_call_whose_arguments_are_all_there_is_found(sent, asked):
    assert scripted(sent, [asked]) == asked


MISSED = [
    (mail(), call(to=BOB)),
    (mail(to=[ANN, BOB]), call(to=ANN)),
    (mail(), call(to=[ANN, BOB])),
    (mail("Booked"), call(subject="Booked!")),
    (mail("o-10"), call(order="o-1")),
    (mail("42000"), call(cents=4200)),
    (mail("booked"), call(subject="Booked")),
    (mail("Your seat", "is 12A."), call(body="Your seat is 12A.")),
    (mail(), call(**{"from": ANN})),
]


@pytest.mark.parametrize(("sent", "asked"), MISSED)
def test_a_call_that_lacks_one_is_not(sent, asked):
    assert scripted(sent, [asked]) is None


def test_of_two_that_are_found_the_one_that_says_more_is_meant():
    sent = mail("Booked", "Your seat is 12A.")
    short, long = call(to=ANN, subject="Booked"), call(to=ANN, body="Your seat is 12A.")
    assert scripted(sent, [short, long]) == scripted(sent, [long, short]) == long


def test_of_two_that_say_the_same_the_first_is_meant():
    one, other = call(a="Booked"), Call(tool="remind", args={"b": "Booked"})
    assert scripted(mail("Booked"), [one, other]) == one
    assert scripted(mail("Booked"), [other, one]) == other


def test_the_message_id_is_taken_as_it_is():
    sent = Mail("a", (ANN,), b"message-ID:\r\n <k1@agent> \r\nMessage-ID: <k2>\r\n\r\n")
    assert sent.message_id == "<k1@agent>"
    assert Mail("a", (ANN,), b"Subject: x\r\n\r\n").message_id is None
    assert Mail("a", (ANN,), b"Message-ID:\r\n\r\n").message_id is None


HEADERS = st.sampled_from(
    [
        b"Subject: =?utf-8?B?/w==?=",
        b"Subject: =?nonsense?Q?a?=",
        b"Subject: \xff\xfe",
        b"Message-ID: <<>>",
        b"From: <@,;",
        b"Content-Type: multipart/mixed; boundary=b",
        b"Content-Type: text/plain; charset=nonsense",
        b"Content-Type: message/rfc822",
        b"Content-Transfer-Encoding: base64",
        b"--b",
        b"--b--",
        b"",
    ]
)


@given(st.lists(HEADERS | st.binary(max_size=20)), st.text(max_size=5))
def test_no_mail_is_too_strange_to_read(lines, text):
    sent = Mail("a@b", (ANN,), b"\r\n".join(lines))
    sent.subject.encode()
    sent.text.encode()
    assert sent.message_id is None or sent.message_id.encode()
    scripted(sent, [call(to=ANN, text=text), call(**{"from": ANN})])
