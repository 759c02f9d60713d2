"""What is said to somebody who has left already is no fault of anybody's."""

import os

from chaoskit.report.show import show


def test_a_reader_that_left_early_changes_nothing():
    """As `head` does: nothing is raised, now or when the stream is closed."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        show("a certificate\n", stream)
        show("and more of it\n", stream)
