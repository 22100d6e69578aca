"""What a judgement keeps, and that it never throws everything away."""

from __future__ import annotations

import pytest
import torch

from oddly.methods.judgement import Judgement


def test_by_threshold() -> None:
    made = Judgement.by_threshold(torch.tensor([0.1, 0.5, 0.9]), 0.5, 7, "a rule")
    assert made.keep.tolist() == [True, False, False]
    assert made.num_removed == 2 and made.removed_fraction == pytest.approx(2 / 3)
    assert str(made) == "epoch 7: 2 of 3 examples look mislabelled (66.7 %): a rule"


def test_one_example_looks_mislabelled() -> None:
    made = Judgement.by_threshold(torch.tensor([0.1, 0.9]), 0.5, 7, "a rule")
    assert "1 of 2 examples looks mislabelled" in str(made)


def test_from_table() -> None:
    table = torch.tensor([[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]])
    made = Judgement.from_table(table, torch.tensor([0, 0, 1]), 1, "a rule")
    assert made.keep.tolist() == [True, False, True]
    assert made.scores.tolist() == pytest.approx([-0.4, 0.6, 0.0])


def test_all_suspicious_is_none() -> None:
    made = Judgement.by_threshold(torch.ones(3), 0.5, 1, "a rule")
    assert made.keep.all() and "would remove everything" in made.rule


def test_more_than_half_removed_is_doubted() -> None:
    def remove(number: int) -> Judgement:
        return Judgement.by_mask(torch.arange(10) >= number, torch.zeros(10), 1, "a rule")

    assert remove(5).tell_doubt() is None
    doubt = remove(6).tell_doubt()
    assert doubt and doubt.startswith("more than half of the examples are removed: unless most")
    assert doubt.endswith("learnt too little to judge; train longer")
