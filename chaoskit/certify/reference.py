"""What the contract says of certification: sentences here, facts from the revision."""

from collections.abc import Iterable, Iterator

from chaoskit.certify import revision as revisions
from chaoskit.certify.revision import Campaign, Revision
from chaoskit.certify.scenario_set import ATTEMPTS_MIN
from chaoskit.checks import REQUIREMENTS
from chaoskit.model.manifest import Store
from chaoskit.model.verdict import Severity

Piece = str | tuple[tuple[str, ...], Iterable[tuple[str, ...]]]
"""A paragraph, or a table's head and rows."""

_LEVELS = """\
A certificate names agent and version, store and its durability settings, contract and
requirement revision, and covers only those. Each level includes the one before. A
certifying run skips nothing: what is missing (a server, an image, a package) ends it
with exit code 2 and the way to get it; what is missing at the base is no level at all.
Capabilities are declared, then verified: a set of scenarios that leaves one untried, or
needs one that is not declared, is an error."""

_CAMPAIGNS = """\
A level holds when each of its campaigns, and each of those below it, was run on every
scenario of the set, struck wherever it was to strike, and broke no requirement that is
demanded there or below. What proves nothing holds a level up as a finding does. Each
campaign judges every promise, answers with fresh ids, and takes nobody's word for it
that a field of the store means nothing (`volatile`); so a closure may come to no end,
and the certificate says how deep it came. Where the model calls with other arguments,
each call has those of its own `or`, or one text or number changed, beginning with the
last argument; a call that has neither is named on the certificate, and an `or` that
names no others is refused. Every broken requirement is listed at the
lowest level that it keeps from being reached; any new one up to the level that was
asked for makes exit code 1, and one above it is told and does not."""

_WEAKER = """\
Weaker promises than `exactly-once` and `last-checkpoint` stand beside the level, in
label and badge too. An agent that gives a run up after fewer than {attempts} deaths
(`max_attempts`) is not certified, as it might wherever it is killed twice. What was not
judged is listed with its reason: what needs an `inspect` or a log that the agent does
not have. Settings of a Redis server that the user has given are not known, and not
stated."""

_PAIRS = """\
A campaign is left out, with the reason on the certificate, where it has no meaning for
the agent or the scenario, and {narrow} where {wider} has tried all that it would: that
one ran every recovery to its end, found nothing, left nothing out and came to an end.
It never stands for {narrow} of a scenario that waits, as its worlds are restored when a
wait is over."""

_TAGS = """\
Tags stand beside a level of at least {lowest}, never instead of one. Each is tried
where the manifest declares its capability, or on its stores; its own campaigns must
break no requirement at all, and no campaign of any level what the tag stands for. (The
tag `upgrade`, of two versions of one agent, is not tried yet.)"""

_DEMANDS = """\
The requirements of revision {name} (SHA-256 of the file: `{digest}`). A released
revision is never changed. What a SHOULD asks for only warns."""

_PUBLISHED = """\
A known failure may be listed, with a reason: it is still run and lifts no level, and
once it passes the run fails until the entry is taken out. It is for one requirement of
one scenario, from its `level` on (without that, the requirement's own), and with a
`subject` for that one call, wait or line only. What is left is a folder to
publish: `certificate.json` (`.html`, `.txt`), JUnit's XML, a badge from {badge} on, the
report and the journal of each campaign, the trials that show something (so `chaoskit
judge` calls a campaign of it inconclusive, and says why), and the one command that does
it again, into another folder (which stands in its own commands); the same command gives
the same `certificate.json`, byte for byte. The self-test that is included is the quick
one."""


def certification(name: str = revisions.CURRENT) -> Iterator[Piece]:
    """Section 9 of the contract, of one revision."""
    revision = revisions.load(name)
    first = revision.order[1]
    yield _LEVELS
    levels = ((f"{each.id} {each.name}", each.holds) for each in revision.levels)
    yield ("level", "holds when"), levels
    yield _CAMPAIGNS
    yield _WEAKER.format(attempts=ATTEMPTS_MIN)
    groups = ((each.id, each.campaigns) for each in revision.levels)
    yield ("level", "campaign", "tries"), _tried(groups)
    for narrow in revision.campaigns():
        if narrow.within is not None:
            yield _PAIRS.format(narrow=f"`{narrow.id}`", wider=f"`{narrow.within}`")
    yield _TAGS.format(lowest=first)
    yield ("tag", "where", "stands for"), _tags(revision)
    tags = ((f"`{each.id}`", each.campaigns) for each in revision.tags)
    yield ("tag", "campaign", "tries"), _tried(tags)
    digest = revisions.digest(revision.revision)
    yield _DEMANDS.format(name=revision.revision, digest=digest)
    yield ("requirement", "from", "says"), _demands(revision)
    yield _PUBLISHED.format(badge=first)


def _tried(
    groups: Iterable[tuple[str, tuple[Campaign, ...]]],
) -> Iterator[tuple[str, str, str]]:
    for name, campaigns in groups:
        for campaign in campaigns:
            only = "" if set(campaign.stores) == set(Store) else _on(campaign.stores)
            yield name, f"`{campaign.id}`", campaign.about + only


def _on(stores: Iterable[Store]) -> str:
    return f" On {' and '.join(stores)} only."


def _tags(revision: Revision) -> Iterator[tuple[str, str, str]]:
    for tag in revision.tags:
        stores = f"the store is {' or '.join(tag.stores)}"
        declared = f"`{tag.capability}` is declared"
        demands = ", ".join(f"`{demand}`" for demand in tag.demands)
        where = declared if tag.capability else stores
        yield f"`{tag.id}`", where, demands or "its campaigns"


def _demands(revision: Revision) -> Iterator[tuple[str, str, str]]:
    for name, demand in revision.requirements.items():
        word = demand.level if demand.severity is Severity.MUST else "SHOULD"
        yield f"`{name}`", word, REQUIREMENTS[name]
