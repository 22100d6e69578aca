from __future__ import annotations

import pytest
import torch

from oddly.core.copies import outvoted


@pytest.mark.parametrize(
    ("labels", "keep", "decided", "lost"),
    [
        ([0, 0, 1], [1, 1, 1], [0, 0, 0], [0, 0, 1]),  # most copies say 0
        ([0, 0, 1], [0, 1, 1], [0, 0, 0], [0, 0, 1]),  # and not all of them look wrong
        ([0, 0, 1], [0, 0, 0], [0, 0, 0], [0, 0, 1]),  # nor would the other label be better
        ([0, 0, 1], [0, 0, 1], [0, 0, 0], [1, 1, 1]),  # it would: nobody knows
        ([0, 0, 1], [0, 0, 1], [1, 0, 0], [0, 0, 1]),  # but for somebody who has looked
        ([0, 0, 1, 1, 2], [0, 0, 0, 0, 1], [0] * 5, [1] * 5),
        ([0, 1], [1, 0], [0, 0], [0, 1]),  # none leads: the verdict keeps one label alone …
        ([0, 0, 1, 1], [0, 1, 0, 0], [0] * 4, [0, 0, 1, 1]),
        ([0, 1], [1, 1], [0, 0], [1, 1]),  # … or several, …
        ([0, 1], [0, 0], [0, 0], [1, 1]),  # … or none: all are suspects
        ([0, 0, 1], [1, 1, 1], [0, 0, 1], [1, 1, 0]),  # a person outvotes them all
        ([0, 1, 0, 1], [1] * 4, [1, 1, 0, 0], [0, 0, 1, 1]),  # two persons disagree: both stay
    ],
)
def test_which_copies_lose(
    labels: list[int], keep: list[int], decided: list[int], lost: list[int]
) -> None:
    """Beside them lie a picture that is no copy and one whose copies agree by now."""
    pictures = torch.tensor([7] * len(labels) + [-1, 3, 3])
    given = torch.tensor([*labels, 5, 2, 2])
    kept = torch.tensor([*keep, 1, 1, 0]).bool()
    sure = torch.tensor([*decided, 0, 0, 0]).bool()
    assert outvoted(pictures, given, kept, sure).int().tolist() == [*lost, 0, 0, 0]


def test_no_copies_and_nobody_decided() -> None:
    none = torch.full((3,), -1)
    assert not outvoted(none, torch.arange(3), torch.ones(3).bool(), None).any()
