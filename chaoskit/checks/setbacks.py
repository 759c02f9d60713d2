"""How far back a crash may take a run, where its agent declares that it may.

Some agents save their steps late, and say so: a crash may lose the last ones, or all of
them. That they are done again is no finding then. What comes of it is judged as ever:
an effect that is applied twice, a key that is not the same again, a checkpoint that was
seen in the store and is not read back.
"""

from chaoskit.model.history import Event, LifeEnded, StatusSeen
from chaoskit.model.manifest import Manifest, Resumes


def takes_back(event: Event, manifest: Manifest) -> bool:
    """Whether an event is a crash by which the run may have lost steps."""
    if manifest.contract.resumes is Resumes.LAST_CHECKPOINT:
        return False
    return isinstance(event, LifeEnded) and event.ending == "died"


def keeps(event: Event, manifest: Manifest) -> bool:
    """Whether all that was done before an event outlasts the crashes after it.

    A run that parks is saved; whoever begins from the start does not even know that.
    """
    if manifest.contract.resumes is Resumes.START:
        return False
    parked = isinstance(event, LifeEnded) and event.ending == "parked"
    return parked or (isinstance(event, StatusSeen) and event.status == "parked")
