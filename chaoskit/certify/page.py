"""`certificate.html`: the certificate as one page, with a link to each campaign."""

from collections.abc import Iterator
from html import escape

from chaoskit.certify.certificate import Certificate
from chaoskit.certify.results import Ran
from chaoskit.certify.stops import Stop
from chaoskit.certify.text import COVERS, facts, figures
from chaoskit.report.text import writable


def as_html(certificate: Certificate) -> str:
    """One self-contained page; how long it took is left out."""
    return writable("\n".join(_page(certificate)) + "\n")


def _page(certificate: Certificate) -> Iterator[str]:
    label = escape(certificate.label)
    yield _HEAD.format(title=label)
    yield f"<h1>{escape(certificate.level_name)}</h1><p>{label}</p>"
    yield "<table>"
    for name, value in _facts(certificate):
        yield f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>"
    yield "</table>"
    yield from _levels(certificate)
    yield from _not_run(certificate)
    stands = certificate.standing
    yield from _stops("What stopped it", certificate.stops)
    asked = certificate.certified.asked.level
    yield from _stops(f"Found, not demanded at {asked}", stands.beyond)
    yield from _stops("Warnings", stands.warnings)
    again = escape(certificate.certified.asked.again)
    yield f"<p>{COVERS}</p>"
    yield f"<h2>To see it again</h2><pre>{again}</pre></body></html>"


def _facts(certificate: Certificate) -> Iterator[tuple[str, str]]:
    certified = certificate.certified
    yield from facts(certificate)
    yield "scenarios", ", ".join(member.name for member in certified.members)
    for entry in certified.known:
        yield "known failure", f"{entry.scenario}: {entry.requirement}: {entry.reason}"
    for entry in certificate.healed:
        yield "passes, and is listed as known", f"{entry.scenario}: {entry.requirement}"


def _levels(certificate: Certificate) -> Iterator[str]:
    revision, ran = certificate.certified.revision, certificate.results.ran
    groups = [(f"{lv.id} {lv.name}", lv.holds, lv.campaigns) for lv in revision.levels]
    groups += [(f"+{tag.id}", "", tag.campaigns) for tag in revision.tags]
    for head, holds, campaigns in groups:
        own = [each for each in ran if each.campaign in campaigns]
        if own:
            yield f"<h2>{escape(head)}</h2><p>{escape(holds)}</p><table>"
            yield from map(_row, own)
            yield "</table>"


def _not_run(certificate: Certificate) -> Iterator[str]:
    aside = [o for o in certificate.results.outcomes if o.within or o.not_for]
    if aside:
        yield "<h2>Not run</h2><table>"
    for each in aside:
        cells = (each.scenario, each.campaign, each.within or each.not_for)
        told = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        yield f"<tr>{told}</tr>"
    if aside:
        yield "</table>"


def _row(ran: Ran) -> str:
    place = f"campaigns/{ran.scenario}/{ran.campaign.id}/report.html"
    link = f'<a href="{escape(place)}">{escape(ran.campaign.id)}</a>'
    cells = (escape(ran.scenario), link, escape(ran.campaign.about))
    told = "".join(f"<td>{cell}</td>" for cell in cells)
    return f'<tr class="{ran.verdict}">{told}<td>{escape(figures(ran))}</td></tr>'


def _stops(head: str, stops: tuple[Stop, ...]) -> Iterator[str]:
    if stops:
        yield f"<h2>{head}</h2>"
    for stop in stops:
        place = ", ".join(filter(None, (stop.level, stop.scenario, stop.campaign)))
        yield f"<h3>{escape(stop.requirement or 'inconclusive')} ({escape(place)})</h3>"
        yield f"<p>{escape(stop.why)}</p>"
        if stop.replay:
            yield f"<pre>{escape(stop.replay)}</pre>"


_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; \
padding: 0 1rem; color: #1f2328; }}
table {{ border-collapse: collapse; }}
th, td {{ text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0; }}
tr.fail td:last-child {{ color: #cf222e; }}
tr.inconclusive td:last-child {{ color: #9a6700; }}
tr.pass td:last-child {{ color: #1a7f37; }}
pre {{ background: #f6f8fa; padding: .6rem; overflow-x: auto; white-space: pre-wrap; }}
</style></head><body>"""
