"""`python -m chaoskit` is the same as `chaoskit`.

A worker imports this module again when it is spawned, and needs no command line.
"""


def main() -> None:
    """The program."""
    from chaoskit.cli import main as run

    run()


if __name__ == "__main__":
    main()
