"""A badge: an image that says its words, whatever they are."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.report import badge


@pytest.mark.parametrize("words", [("chaoskit", "L2 · redis"), ("a<b>", '"&"')])
def test_it_says_its_words_to_the_eye_and_to_a_screen_reader(words):
    image = ElementTree.fromstring(badge(*words))
    assert image.get("aria-label") == ": ".join(words)
    texts = [e.text for e in image.iter() if e.tag.endswith("}text")]
    assert tuple(texts) == words


def test_longer_words_make_it_wider_and_its_halves_fill_it():
    def widths(message):
        image = ElementTree.fromstring(badge("chaoskit", message))
        halves = [e for e in image.iter() if e.tag.endswith("rect")][1:]
        return int(image.get("width")), sum(int(e.get("width")) for e in halves)

    short, long = widths("L1"), widths("L3 · postgres")
    assert short[0] == short[1] < long[0] == long[1]


def test_it_fetches_nothing_and_is_the_same_each_time():
    made = badge("chaoskit", "L2", "#1a7f37")
    assert made == badge("chaoskit", "L2", "#1a7f37")
    assert "#1a7f37" in made
    assert "href" not in made
    assert "http" not in made.replace("http://www.w3.org/2000/svg", "")


@given(st.text(st.characters(exclude_categories=()), max_size=40))
def test_no_text_breaks_it(said):
    image = ElementTree.fromstring(badge(said, said).encode())
    assert not [e for e in image.iter() if "script" in e.tag]
