"""`oddly clean`: a folder or table of images in, a verdict on every label out."""

from __future__ import annotations

from oddly.clean.api import clean
from oddly.clean.settings import Choice
from oddly.clean.watch import CleanWatcher

__all__ = ["Choice", "CleanWatcher", "clean"]
