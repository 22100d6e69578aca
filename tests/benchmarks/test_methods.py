"""The methods' cost benchmark at a tiny size: right figures, not fast ones."""

from __future__ import annotations

import json

import pytest
import torch

from oddly.benchmarks.methods import measure
from oddly.errors import InputError


def test_factors_over_plain_training() -> None:
    threads = torch.get_num_threads()
    figures = measure(["co_teaching"], "synthetic", epochs=2, repeats=2, device="cpu")
    assert json.loads(json.dumps(figures)) == figures
    assert figures["factors"]["erm"] == 1 and figures["factors"]["co_teaching"] > 1
    assert figures["declared"] == {"erm": 1.0, "co_teaching": 2.0}
    assert figures["erm_seconds"] > 0 and torch.get_num_threads() == threads


def test_an_unknown_method() -> None:
    with pytest.raises(InputError, match="unknown method 'ren2'; did you mean 'ren'?"):
        measure(["ren2"])
