"""The verifier's losses by hand, its prototypes, and what it learns."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from oddly.methods.base import Batch, Context
from oddly.methods.cleannet import CENTRES, CleanNet, find_centres, verification_loss
from tests.methods.toy import go_to, make_context


def test_the_loss_by_hand() -> None:
    similarity = torch.tensor([0.7, 0.7, 0.05])
    right = torch.tensor([True, False, False])
    assert verification_loss(similarity, right).tolist() == pytest.approx([0.3, 3.0, 0.0])


def test_centres_of_large_and_small_classes() -> None:
    features = torch.cat([torch.randn(50, 2), torch.tensor([[5.0, 5.0], [6.0, 6.0]])])
    labels = torch.tensor([0] * 50 + [1] * 2)
    centres = find_centres(features, labels, 3, seed=0)
    assert centres.shape == (3, CENTRES, 2)
    assert centres[1].unique(dim=0).tolist() == [[5, 5], [6, 6]]
    assert not centres[2].any()  # a class without examples
    assert centres[0].mean(0).tolist() == pytest.approx(features[:50].mean(0).tolist(), abs=0.5)


class Known:
    """Trusted examples whose features are given."""

    def __init__(self, features: Tensor, labels: Tensor) -> None:
        self._features, self.labels, self.given_labels = features, labels, labels

    def __len__(self) -> int:
        return len(self.labels)

    def draw(self, size: int) -> Batch:
        raise NotImplementedError

    def features(self, model: nn.Module) -> Tensor:
        return self._features


def make_run(size: float, common: float) -> tuple[Context, Known]:
    """Three classes that differ by `size` around what all have in common; 30 of 120 are wrong."""
    generator = torch.Generator().manual_seed(0)
    true = torch.arange(150) % 3
    classes = size * torch.eye(3)[true].repeat(1, 4)
    features = common + classes + size / 3 * torch.rand(150, 12, generator=generator)
    labels = true.clone()
    labels[:30] = (labels[:30] + 1) % 3
    context = make_context(labels[:120].tolist(), 3)
    context.features = lambda _: features[:120]
    context.trusted = trusted = Known(features[120:], true[120:])
    return context, trusted


@pytest.mark.parametrize(("size", "common"), [(3, 0), (0.6, 1)])
def test_wrong_labels_end_up_unlike_their_class(size: float, common: float) -> None:
    similarity = CleanNet(steps=150).verify(*make_run(size, common))
    assert similarity[:30].max() < similarity[30:].min()
    assert (similarity[:30] < 0.1).float().mean() > 0.9


def test_weights_leave_the_learning_rate_alone() -> None:
    method, (context, _) = CleanNet(steps=20), make_run(3, 0)
    method.setup(context)
    go_to(context, method.stages(8)[0], 0)
    method.end_stage(context)
    assert method.weights.mean().item() == pytest.approx(1)
    assert method.weights.min() >= 0
