"""Reports: a campaign's outcome as text, JSON, JUnit's XML, a page, and a badge.

Pure functions of frozen data: the same report gives the same bytes.
"""

from chaoskit.report.badge import badge
from chaoskit.report.html_report import as_html
from chaoskit.report.json_report import as_json
from chaoskit.report.junit import as_junit
from chaoskit.report.page import page
from chaoskit.report.text import as_text, story

__all__ = ["as_html", "as_json", "as_junit", "as_text", "badge", "page", "story"]
