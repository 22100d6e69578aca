"""Verdicts as small tables, for tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

NBSP = "\N{NO-BREAK SPACE}"


def make_verdicts(losses: list[float], **columns: Any) -> pd.DataFrame:
    n = len(losses)
    values = {
        "id": [f"e{i}" for i in range(n)],
        "given_label": [0] * n,
        "given_name": ["cat"] * n,
        "loss": losses,
        "score": losses,
        "counterfactual_percentile": [np.nan] * n,
        "threshold": [np.nan] * n,
        "keep": [True] * n,
        "suggested_label": [1] * n,
        "suggested_name": ["dog"] * n,
        "suggested_confidence": [0.5] * n,
    }
    return pd.DataFrame({**values, **columns})
