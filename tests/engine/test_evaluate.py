from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from oddly.data.base import Augment, Split
from oddly.engine.build import build
from oddly.engine.config import RunConfig
from oddly.engine.evaluate import predict, score_test_set
from oddly.engine.feed import Feed


class FirstPixels(nn.Module):
    """Logits = the image's pixels, once dropout is off."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.9)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.dropout(inputs.flatten(1))


def make_feed(pixels: list[list[int]], labels: list[int], batch_size: int = 2) -> Feed:
    images = torch.tensor(pixels, dtype=torch.uint8)[:, None, None, :]
    split = Split(images, torch.tensor(labels), [str(i) for i in range(len(labels))])
    # mean 0 and deviation 1/255 leave the pixel values as they are
    return Feed(
        split, (0.0,), (1 / 255,), Augment(pad=3, flip=True), batch_size, torch.device("cpu")
    )


def test_by_hand() -> None:
    pixels = [[3, 0, 0, 0, 0, 0], [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]]
    labels = [0, 1, 0]
    predictions = predict(FirstPixels(), make_feed(pixels, labels))
    assert predictions.labels.tolist() == [0, 5, 5]
    total = sum(math.exp(k) for k in range(6))
    expected = [math.log(math.exp(3) + 5) - 3, math.log(total) - 1, math.log(total)]
    torch.testing.assert_close(predictions.losses, torch.tensor(expected))
    assert predictions.confidences[0] == pytest.approx(math.exp(3) / (math.exp(3) + 5))
    assert predictions.in_top5.tolist() == [True, True, False]
    assert predictions.accuracy(torch.tensor(labels)) == pytest.approx(100 / 3)
    assert predictions.top5_accuracy == pytest.approx(200 / 3)
    by_class = predictions.accuracy_by_class(torch.tensor(labels), 3)
    assert by_class == [50, 0, None]


def test_an_image_and_its_mirror_image_together() -> None:
    """Logits 4, 0, 0 become 2, 0, 2; and 0, 6, 2 become 1, 6, 1."""
    feed = make_feed([[4, 0, 0], [0, 6, 2]], [2, 1])
    plain, both = (predict(FirstPixels(), feed, mirror=mirror) for mirror in (False, True))
    assert plain.labels.tolist() == [0, 1] and both.labels[1] == 1
    total = 2 * math.exp(2) + 1
    assert both.losses[0] == pytest.approx(math.log(total) - 2)
    assert both.confidences.tolist() == pytest.approx(
        [math.exp(2) / total, math.exp(6) / (math.exp(6) + 2 * math.exp(1))]
    )


def test_fewer_than_five_classes() -> None:
    predictions = predict(FirstPixels(), make_feed([[1, 0], [0, 1], [5, 0]], [0, 1, 1]))
    assert predictions.top5_accuracy == 100


@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_left_in_the_mode_it_was_in(training: bool) -> None:
    model = FirstPixels().train(training)
    predict(model, make_feed([[1, 0]], [0]))
    assert model.training is training


class FirstColumns(nn.Module):
    """Logits = the brightness of the first three columns; of a mirror image, the last three."""

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs.mean((1, 2))[:, :3]


def test_a_mirrored_test_where_the_config_asks_for_it() -> None:
    accuracies = {}
    for mirror in (False, True):
        parts = build(RunConfig("synthetic", flip=True, mirror_test=mirror))
        parts.model = FirstColumns()
        assert parts.test_feed
        expected = predict(parts.model, parts.test_feed, mirror=mirror)
        accuracies[mirror] = score_test_set(parts)["test_accuracy"]
        assert accuracies[mirror] == expected.accuracy(parts.test_feed.labels)
    assert accuracies[False] != accuracies[True]
