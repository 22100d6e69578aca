"""The small network that trains on the features of a frozen backbone."""

from __future__ import annotations

from torch import Tensor, nn


class FeatureHead(nn.Module):
    """One linear layer, D features to K classes; a map (B, D, H, W) is averaged first.

    There is no hidden layer, because it would memorise single labels within a few epochs (with few
    images, at once), and wrong ones would no longer stand out.
    """

    def __init__(self, num_classes: int, features: int) -> None:
        super().__init__()
        self.fc = nn.Linear(features, num_classes)

    def get_classifier(self) -> nn.Linear:
        return self.fc

    def forward(self, features: Tensor) -> Tensor:
        if features.ndim == 4:
            features = features.mean((2, 3))
        logits: Tensor = self.fc(features)
        return logits
