"""How sure suggestions are, counted by hand; and labels for the sizes that were compared."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from evidence import clean_cifar, image_size
from evidence.again import RESULTS


def test_suggestions_by_how_sure_they_are() -> None:
    found = pd.DataFrame(
        {
            "suggested_name": ["cat", "dog", None, "cat", "dog"],
            "suggested_confidence": [0.55, 0.65, 0.99, 0.8, 1.0],
        }
    )
    right = np.array([True, False, False, False, True])
    assert clean_cifar.suggestions(found, right) == {
        "said": 0.75,
        "right": 0.5,
        "right_from_0.5": 0.5,
        "right_from_0.7": 0.0,
        "right_from_0.9": 1.0,
    }


def test_every_stored_row_has_its_cell() -> None:
    here = Path()
    for file, key, cells in (
        ("clean_cifar10.json", "runs", clean_cifar.cells(here, here)),
        ("image_size.json", "rows", image_size.cells(here, here, here)),
    ):
        stored = json.loads((RESULTS / file).read_text())[key]
        names = [name for name, _ in cells]
        assert len(names) == len(stored)
        assert all(name.items() <= row.items() for name, row in zip(names, stored, strict=True))


def test_uniform_labels_may_hit_the_true_one() -> None:
    true = np.arange(4_000) % 10
    given = image_size.give("uniform40", true, true, 10, 0, None)
    assert 0.33 < (given != true).mean() < 0.39 and not np.shares_memory(given, true)
    assert (given != image_size.give("uniform40", true, true, 10, 1, None)).any()
    assert image_size.give("clean", true, true, 10, 0, None) is true
