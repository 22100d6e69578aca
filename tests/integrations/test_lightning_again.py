"""A second fit, a fit after an error, and what a checkpoint holds."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from oddly.errors import InputError
from tests.integrations.toy import EPOCHS, K, check, make_blobs

lightning = pytest.importorskip("lightning")

from lightning.pytorch.callbacks import ModelCheckpoint  # noqa: E402

from oddly.integrations.lightning import Denoise  # noqa: E402
from tests.integrations.modules import (  # noqa: E402
    QUIET,
    Blobs,
    Tuned,
    make_trainer,
    train_loader,
    unseen_loader,
)

pytestmark = QUIET


def test_a_second_fit_goes_on() -> None:
    denoise, module = Denoise(K), Blobs()
    trainer = make_trainer(denoise)
    trainer.fit(module, train_loader())
    verdict = denoise.verdict
    check(denoise.verdict)
    trainer.fit(module, train_loader())  # nothing left to do
    assert len(module.seen) == EPOCHS
    assert torch.equal(denoise.verdict.keep, verdict.keep)  # type: ignore[union-attr]
    trainer.fit_loop.max_epochs = EPOCHS + 2
    trainer.fit(module, train_loader())
    assert len(module.seen) == EPOCHS + 2
    assert torch.equal(denoise.verdict.keep, verdict.keep)  # type: ignore[union-attr]
    points, given, _ = make_blobs()
    by_point = {tuple(point.tolist()): index for index, point in enumerate(points)}
    for inputs, labels in module.seen[EPOCHS + 1]:
        index = torch.tensor([by_point[tuple(point.tolist())] for point in inputs])
        assert verdict.keep[index].all()  # type: ignore[union-attr]
        assert torch.equal(labels, given[index])
    make_trainer(denoise, fast_dev_run=True).fit(Blobs(), train_loader())
    assert torch.equal(denoise.verdict.keep, verdict.keep)  # type: ignore[union-attr]


def test_a_first_fit_that_was_too_short() -> None:
    denoise, module = Denoise(K, epochs=EPOCHS), Tuned()
    trainer = make_trainer(denoise, max_epochs=3)
    with pytest.warns(UserWarning, match="before the verdict"):
        trainer.fit(module)
    trainer.fit_loop.max_epochs = EPOCHS
    trainer.fit(module)
    check(denoise.verdict)
    assert denoise._feed is not None
    assert denoise._feed.denoiser.sentinels is not None
    separations = denoise._feed.denoiser.sentinels.separations
    assert len(separations) == denoise.verdict.epoch  # type: ignore[union-attr]
    assert all(separations)  # 0 would be an epoch that nobody saw


def test_after_an_error_one_can_go_on(tmp_path: Path) -> None:
    class Broken(Tuned):
        broken = True

        def training_step(self, batch: Any, number: int) -> Any:
            if self.broken and self.trainer.global_step == 24:
                raise RuntimeError("out of memory")
            return super().training_step(batch, number)

    denoise, module = Denoise(K), Broken()
    trainer = make_trainer(denoise)
    with pytest.raises(RuntimeError, match="out of memory"):
        trainer.fit(module)
    assert "dataloader" not in vars(trainer.fit_loop._data_source)
    module.broken = False
    trainer.fit(module)
    check(denoise.verdict)


class Interrupted(Tuned):
    """Somebody presses Ctrl-C in the middle of the fourth epoch, once."""

    pressed = False

    def training_step(self, batch: Any, number: int) -> Any:
        if not self.pressed and self.trainer.global_step == 56:
            self.pressed = True
            raise KeyboardInterrupt
        return super().training_step(batch, number)


@pytest.fixture
def heeded() -> Iterator[None]:
    """Lightning goes deaf to Ctrl-C before it leaves."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeded")
def test_who_interrupts_before_e_is_told_how_to_get_a_verdict(tmp_path: Path) -> None:
    denoise, module = Denoise(K), Interrupted()
    with pytest.raises(InputError, match="Denoise has followed no fit"):
        denoise.judge_now(module)
    saver = ModelCheckpoint(tmp_path, filename="left", save_on_exception=True)
    trainer = make_trainer(denoise, saver, enable_checkpointing=True)
    how = r"interrupted before the verdict.* checkpoint.* judge_now\(model\).* SystemExit"
    with pytest.warns(UserWarning, match=how), pytest.raises(SystemExit):
        trainer.fit(module)
    assert denoise.verdict is None  # a checkpoint saved now must not hold an early one
    verdict = denoise.judge_now(module)
    assert verdict.epoch == 4 and denoise.verdict is verdict
    check(verdict)
    saved = next(tmp_path.glob("*.ckpt"))
    again = Denoise(K)
    make_trainer(again).fit(module, ckpt_path=str(saved))
    assert again.verdict is not None and again.verdict.epoch == 9  # as without a break


@pytest.mark.usefixtures("heeded")
def test_an_interruption_after_e_is_nothing_to_tell_of() -> None:
    denoise, module = Denoise(K, prune_after=2), Interrupted()
    with pytest.raises(SystemExit):  # a warning would be an error
        make_trainer(denoise).fit(module)
    assert denoise.judge_now(module) is denoise.verdict


def test_a_checkpoint_saved_without_it(tmp_path: Path) -> None:
    path = tmp_path / "plain.ckpt"
    plain = make_trainer(max_epochs=3)
    plain.fit(Blobs(), train_loader())
    plain.save_checkpoint(path)
    with pytest.raises(InputError, match="continues after step 48, .* saved without Denoise"):
        make_trainer(Denoise(K)).fit(Blobs(), train_loader(), ckpt_path=str(path))


def test_a_verdict_can_be_read_from_a_checkpoint(tmp_path: Path) -> None:
    denoise = Denoise(K)
    trainer = make_trainer(denoise)
    trainer.fit(Blobs(), train_loader())
    trainer.save_checkpoint(tmp_path / "all.ckpt")
    saved = torch.load(tmp_path / "all.ckpt", weights_only=True)["callbacks"]
    read = Denoise(K)
    assert read.verdict is None
    read.load_state_dict(saved[read.state_key])
    assert torch.equal(read.verdict.keep, denoise.verdict.keep)  # type: ignore[union-attr]
    fresh = Denoise(K)
    trainer = make_trainer(fresh)
    trainer.validate(Blobs(), unseen_loader(), ckpt_path=str(tmp_path / "all.ckpt"), verbose=False)
    assert torch.equal(fresh.verdict.keep, denoise.verdict.keep)  # type: ignore[union-attr]
