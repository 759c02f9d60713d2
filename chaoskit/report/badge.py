"""A badge: two words beside each other, as an SVG image of its own."""

from html import escape

from chaoskit.model.errors import printable

GREEN, AMBER, RED, GREY = "#1a7f37", "#9a6700", "#cf222e", "#57606a"

_CHARACTER, _PADDING, _HEIGHT = 6.6, 16, 20


def badge(label: str, message: str, colour: str = GREY) -> str:
    """What is claimed, ``label``, and what holds of it, ``message``, in a colour.

    The width is that of a common sans-serif letter; text is stretched to fit it, so
    that it looks the same with whatever font there is.
    """
    label, message = printable(label), printable(message)
    left, right = _width(label), _width(message)
    return _BADGE.format(
        label=escape(label),
        message=escape(message),
        colour=escape(colour),
        width=left + right,
        left=left,
        right=right,
        height=_HEIGHT,
        label_at=left / 2,
        message_at=left + right / 2,
        label_length=left - _PADDING,
        message_length=right - _PADDING,
    )


def _width(text: str) -> int:
    return round(max(1, len(text)) * _CHARACTER) + _PADDING


_BADGE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" role="img" \
aria-label="{label}: {message}">
<title>{label}: {message}</title>
<clipPath id="r"><rect width="{width}" height="{height}" rx="3"/></clipPath>
<g clip-path="url(#r)">
<rect width="{left}" height="{height}" fill="#24292f"/>
<rect x="{left}" width="{right}" height="{height}" fill="{colour}"/>
</g>
<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" \
font-size="11">
<text x="{label_at}" y="14" textLength="{label_length}">{label}</text>
<text x="{message_at}" y="14" textLength="{message_length}">{message}</text>
</g>
</svg>
"""
