"""`python -m chaoskit` is the same as `chaoskit`."""

from chaoskit.cli import main

if __name__ == "__main__":
    main()
