"""The small network that trains on the features of a frozen backbone."""

from __future__ import annotations

from torch import Tensor, nn

WIDTH = 256
DROPOUT = 0.5  # of the features: the head then learns classes for longer before single labels


class FeatureHead(nn.Module):
    """D features - dropout - 256 - batch norm - ReLU - K; a map (B, D, H, W) is averaged first."""

    def __init__(self, num_classes: int, features: int) -> None:
        super().__init__()
        self.dropout = nn.Dropout(DROPOUT)
        self.hidden = nn.Linear(features, WIDTH, bias=False)
        self.norm = nn.BatchNorm1d(WIDTH)
        self.activation = nn.ReLU()
        self.fc = nn.Linear(WIDTH, num_classes)

    def get_classifier(self) -> nn.Linear:
        return self.fc

    def forward(self, features: Tensor) -> Tensor:
        if features.ndim == 4:
            features = features.mean((2, 3))
        logits: Tensor = self.fc(self.activation(self.norm(self.hidden(self.dropout(features)))))
        return logits


def feature_head(num_classes: int, in_channels: int = 1280) -> FeatureHead:
    """The head for `in_channels` features."""
    return FeatureHead(num_classes, in_channels)
