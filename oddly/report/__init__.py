"""A run as one page that opens from disk anywhere: no network, no torch."""

from __future__ import annotations

from oddly.report.render import write_report

__all__ = ["write_report"]
