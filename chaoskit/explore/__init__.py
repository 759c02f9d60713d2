"""Which schedule next: pure functions and small explorers over what trials showed.

An explorer is asked twice: `first` for the visits that follow from the baseline, and
`after` for those that follow from a finished visit. It never runs anything.
"""
