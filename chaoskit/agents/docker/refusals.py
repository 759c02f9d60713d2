"""What to tell people when the docker engine is not there, or says no."""

from typing import Self

from docker.errors import APIError, NotFound

from chaoskit.agents.life import LaunchError


class Refusal(LaunchError):
    """The engine was asked and said no. Can be pickled, as worker and campaign need."""

    reason = ""
    is_about_something_gone = False

    @classmethod
    def of(cls, error: APIError) -> Self:
        """What the SDK raises, in our terms."""
        reason = str(error.explanation or error)
        refusal = cls(f"the docker engine refused: {reason}")
        refusal.reason = reason
        refusal.is_about_something_gone = isinstance(error, NotFound)
        return refusal

    @property
    def is_about_one_that_ended(self) -> bool:
        """Whether there is nothing left to be signalled, frozen or thawed."""
        ended = ("is not running", "is not paused")
        return self.is_about_something_gone or any(w in self.reason for w in ended)


def elsewhere(address: str) -> str:
    """For an engine that is not at a unix socket."""
    return (
        f"DOCKER_HOST is {address!r}; expected an engine of this machine at a unix"
        " socket, such as unix:///var/run/docker.sock: the world of the agent listens"
        " on this machine's loopback only"
    )


def unreachable(address: str, error: Exception) -> str:
    """For an engine that does not answer, or not as one."""
    if isinstance(error, PermissionError):
        remedy = "run as root, or as a user of the group `docker`"
    else:
        remedy = (
            "install it (on Debian: apt-get install docker.io), start it (systemctl"
            " start docker, or `dockerd` as root), and see that `docker info` works"
        )
    return (
        f"`launch: docker` needs a docker engine, and none answers at {address}:"
        f" {getattr(error, 'strerror', None) or error}; {remedy}. DOCKER_HOST names"
        " another socket"
    )
