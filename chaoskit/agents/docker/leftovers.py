"""Removes the containers and disks that a campaign has in an engine, by their label.

A campaign notes in its folder which engine it uses. Only whoever clears away a folder
with such a note asks that engine, so a campaign without containers needs no docker.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any

_NOTE = "docker-engine"


def take_note(folder: Path, address: str) -> None:
    """Notes that the campaign of this folder has things in this engine."""
    (folder / _NOTE).write_text(address)


def remove_containers(folder: Path) -> bool:
    """Removes all that the campaign of this folder has left in an engine.

    False where something could not be removed, or the engine does not answer: the
    folder should then stay for the next campaign to try.
    """
    note = folder / _NOTE
    if not note.exists():
        return True
    # Only whoever has containers to remove waits for the SDK to be imported.
    from docker.errors import DockerException

    from chaoskit.agents.docker.engine import CAMPAIGN_LABEL, connected

    try:
        api = connected(note.read_text())
    except (DockerException, OSError):
        return False
    try:
        label = {"label": f"{CAMPAIGN_LABEL}={folder.name}"}
        return _remove_all(api, label)
    except (DockerException, OSError):
        return False
    finally:
        api.close()


def _remove_all(api: Any, label: dict[str, str]) -> bool:
    from docker.errors import APIError

    for container in api.containers(all=True, filters=label):
        with suppress(APIError):
            api.remove_container(container["Id"], v=True, force=True)
    # Each layer of a kept disk is made from the one before: the newest goes first.
    while images := {each["Id"] for each in api.images(all=True, filters=label)}:
        removed = [image for image in images if _is_removed(api, image)]
        if not removed:
            return False
    return not api.containers(all=True, filters=label)


def _is_removed(api: Any, image: str) -> bool:
    from docker.errors import APIError

    with suppress(APIError):
        api.remove_image(image, noprune=True)
        return True
    return False
