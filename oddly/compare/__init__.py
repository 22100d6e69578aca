"""Several methods on the same data, noise, model and seeds, at equal epochs or equal cost."""

from oddly.compare.page import write_page
from oddly.compare.plan import Plan
from oddly.compare.run import Comparison, compare
from oddly.compare.table import lines_of, markdown

__all__ = ["Comparison", "Plan", "compare", "lines_of", "markdown", "write_page"]
