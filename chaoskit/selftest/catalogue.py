"""The specimens that come with chaoskit, found in the installed package.

Each is a folder under `specimens/`: an agent, its manifest `agent.yaml`, a
`scenario.yaml` as small as shows it, and `specimen.yaml`, which says what it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated

from pydantic import Field
from ruamel.yaml import YAML

from chaoskit.checks import REQUIREMENTS
from chaoskit.loading import Loaded, load_scenario
from chaoskit.model.errors import did_you_mean, listed
from chaoskit.model.fields import Frozen, Text, flaw
from chaoskit.model.manifest import Launch, Manifest, Store
from chaoskit.model.scenario import WaitTurn


class Label(Frozen):
    """What `specimen.yaml` says."""

    about: Text
    """What the agent does, in a sentence; of a broken one also what is wrong."""
    kinds: tuple[Text, ...] = ()
    """Which kinds of failure seen in the field it stands for, such as J1."""
    requirement: Text | None = None
    """What a broken one breaks; a correct one breaks nothing."""
    shows: str | None = None
    """The smallest schedule that shows a broken one; empty where no fault is needed."""
    quick: Annotated[int, Field(ge=1, le=50)] = 4
    """How many trials a quick self-test gives a correct one."""


@dataclass(frozen=True)
class Specimen:
    """One agent of the self-test."""

    name: str
    folder: Path
    label: Label
    store: str
    mode: str
    weight: int
    """How long its campaign takes, roughly: the longest ones are to begin first."""

    @property
    def scenario(self) -> Path:
        """The file that `chaoskit run` takes."""
        return self.folder / "scenario.yaml"

    @property
    def is_broken(self) -> bool:
        """Whether it is there to be found out."""
        return self.label.requirement is not None


class UnknownSpecimen(Exception):
    """A name that no specimen has; the text says which there are."""


def specimens(names: Sequence[str] = ()) -> tuple[Specimen, ...]:
    """Those of these names, or all; the broken ones first, by requirement.

    Raises:
        UnknownSpecimen: there is none of that name.
    """
    folders = {folder.name: folder for folder in _folders()}
    for name in names:
        if name not in folders:
            guess = did_you_mean(name, folders) or f"there are {listed(folders)}"
            raise UnknownSpecimen(f"{name}: expected the name of a specimen; {guess}")
    picked = map(_specimen, (folders[name] for name in names or folders))
    return tuple(sorted(picked, key=_order))


def _order(specimen: Specimen) -> tuple[bool, str, str]:
    label = specimen.label
    return not specimen.is_broken, label.requirement or "", specimen.name


def _folders() -> list[Path]:
    """A wheel is unpacked where it is installed, so its files have paths."""
    root = Path(str(resources.files("chaoskit.selftest") / "specimens"))
    return sorted(path.parent for path in root.glob("*/specimen.yaml"))


def _specimen(folder: Path) -> Specimen:
    text = (folder / "specimen.yaml").read_text(encoding="utf-8")
    label = Label.model_validate(YAML(typ="safe", pure=True).load(text))
    if label.requirement is not None and label.requirement not in REQUIREMENTS:
        raise flaw("a requirement of the checks", label.requirement)
    loaded = load_scenario(folder / "scenario.yaml")
    manifest = loaded.manifest
    mode, weight = _mode(manifest), _weight(loaded)
    return Specimen(folder.name, folder, label, manifest.store.value, mode, weight)


def _weight(loaded: Loaded) -> int:
    """Fleets and waits take their time, whatever the machine."""
    waits = any(isinstance(turn, WaitTurn) for turn in loaded.scenario.llm.script)
    slow_start = loaded.manifest.launch is not Launch.FORK
    many_crossings = loaded.manifest.store in (Store.SQLITE, Store.POSTGRES)
    long = 4 * waits + 4 * bool(loaded.manifest.fleet)
    return long + 2 * slow_start + many_crossings + len(loaded.scenario.faults)


def _mode(manifest: Manifest) -> str:
    """How it runs: one-shot, or as how many long-lived processes."""
    count = len(manifest.fleet)
    kind = "one-shot" if not count else f"{count} workers" if count > 1 else "worker"
    return f"{kind}, {manifest.launch.value}"
