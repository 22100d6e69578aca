"""Steps that are taken by hand, skipped or counted otherwise than batches."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

from oddly.errors import InputError
from tests.integrations.toy import BATCH, EPOCHS, K, N, check

lightning = pytest.importorskip("lightning")

from oddly.integrations.lightning import Denoise  # noqa: E402
from tests.integrations.modules import (  # noqa: E402
    QUIET,
    Blobs,
    Tuned,
    make_trainer,
    train_loader,
)

pytestmark = QUIET


class ByHand(Tuned):
    """Takes its steps by itself, as many per batch as it has optimizers."""

    def __init__(self, answer: Any, optimizers: int = 1) -> None:
        super().__init__()
        self.answer = answer
        self.layers = [self.net] if optimizers == 1 else [self.net[0], self.net[2]]
        self.automatic_optimization = False

    def configure_optimizers(self) -> Any:
        return [torch.optim.SGD(layer.parameters(), self.lr, momentum=0.9) for layer in self.layers]

    def training_step(self, batch: Any, number: int) -> Any:
        found = super().training_step(batch, number)
        self.zero_grad()
        self.manual_backward(found["loss"])
        steppers: Any = self.optimizers()
        for each in steppers if isinstance(steppers, list) else [steppers]:
            each.step()
        return self.answer(found)


def only_logits(found: Any) -> Any:
    return {"logits": found["logits"]}


def test_steps_taken_by_hand() -> None:
    denoise = Denoise(K)
    make_trainer(denoise).fit(ByHand(only_logits))
    check(denoise.verdict)
    module = ByHand(lambda found: None)
    with pytest.raises(InputError, match='must return {"loss": loss, "logits": logits}'):
        make_trainer(Denoise(K)).fit(module)
    assert len(module.seen) == 1


@pytest.mark.parametrize(
    ("optimizers", "options", "message"),
    [
        (1, {}, None),
        (2, {"epochs": EPOCHS}, None),
        (
            2,
            {},
            "an epoch of 16 batches takes 32 steps, so max_steps=384 ends training after 12 epochs,"
            " but Denoise reckons with 24: pass Denoise(epochs=12)",
        ),
    ],
)
def test_steps_of_several_optimizers_are_told_of_after_the_first_epoch(
    optimizers: int, options: dict[str, Any], message: str | None
) -> None:
    denoise = Denoise(K, **options)
    limits = {"max_epochs": -1, "max_steps": optimizers * N // BATCH * EPOCHS}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make_trainer(denoise, **limits).fit(ByHand(only_logits, optimizers))
    assert denoise._feed is not None and denoise._feed.denoiser.epoch == EPOCHS
    told = [str(each.message) for each in caught if each.filename == __file__]  # where fit is
    assert told[:1] == ([message] if message else [])
    if not message:
        check(denoise.verdict)


@pytest.mark.filterwarnings("ignore:`training_step` returned `None`")
def test_a_step_may_be_skipped() -> None:
    class Skips(Tuned):
        def training_step(self, batch: Any, number: int) -> Any:
            found = super().training_step(batch, number)
            return None if number == 7 else found

    denoise = Denoise(K)
    make_trainer(denoise).fit(Skips())
    check(denoise.verdict)


def test_steps_count_in_epochs_cut_short() -> None:
    denoise = Denoise(K)
    limits = {"max_epochs": -1, "max_steps": 14 * EPOCHS, "limit_train_batches": 14}
    make_trainer(denoise, **limits).fit(Blobs(), train_loader())
    assert denoise._feed is not None
    assert denoise._feed.denoiser.rule.epochs == EPOCHS
    check(denoise.verdict)
