"""Reports: a `Report` as text for people and as JSON for programs."""

from chaoskit.report.json_report import as_json
from chaoskit.report.text import as_text

__all__ = ["as_json", "as_text"]
