"""What each of two processes does: `ranks.py lightning FOLDER`, or under torchrun `huggingface`.

`ranks.py spawn FOLDER` is the process that starts them, and writes what reached it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from tests.integrations.toy import BATCH
from tests.leaving import leave_together, leave_together_at_exit


def run_lightning(folder: Path) -> None:
    """Lightning starts the second process by itself."""
    from oddly.integrations.lightning import Denoise
    from tests.integrations.modules import Blobs, make_trainer, train_loader, unseen_loader
    from tests.integrations.toy import K

    denoise, module = Denoise(K), Blobs()
    trainer = make_trainer(denoise, strategy="ddp", devices=2)
    trainer.fit(module, train_loader(batch_size=BATCH // 2), unseen_loader())
    assert denoise.verdict is not None
    seen = {epoch: len(torch.cat([labels for _, labels in b])) for epoch, b in module.seen.items()}
    found = {"verdict": denoise.verdict.state_dict(), "seen": seen, "steps": trainer.global_step}
    torch.save(found, folder / f"{trainer.global_rank}.pt")


def run_spawn(folder: Path) -> None:
    from lightning.pytorch.callbacks import LambdaCallback

    from oddly.integrations.lightning import Denoise
    from tests.integrations.modules import Blobs, make_trainer, train_loader
    from tests.integrations.toy import K

    denoise = Denoise(K)
    leave = LambdaCallback(on_fit_end=leave_together_at_exit)
    trainer = make_trainer(denoise, leave, strategy="ddp_spawn", devices=2)
    trainer.fit(Blobs(), train_loader(batch_size=BATCH // 2))
    assert denoise.verdict is not None
    torch.save(denoise.verdict.state_dict(), folder / "parent.pt")


def run_huggingface(folder: Path) -> None:
    from tests.integrations.trainers import make_trainer

    trainer = make_trainer(
        folder,
        per_device_train_batch_size=BATCH // 2,
        ddp_backend="gloo",
        ddp_find_unused_parameters=False,
        save_strategy="steps",
        save_steps=23,  # the first in the middle of an epoch before E
    )
    trainer.train()
    found = {"verdict": trainer.verdict.state_dict(), "steps": trainer.state.global_step}
    again = make_trainer(
        folder / "again",
        per_device_train_batch_size=BATCH // 2,
        ddp_backend="gloo",
        ddp_find_unused_parameters=False,
    )
    again.train(resume_from_checkpoint=str(folder / "checkpoint-23"))
    found["resumed"] = again.verdict.state_dict()
    torch.save(found, folder / f"{trainer.args.process_index}.pt")


if __name__ == "__main__":
    parts = {"lightning": run_lightning, "spawn": run_spawn, "huggingface": run_huggingface}
    parts[sys.argv[1]](Path(sys.argv[2]))
    leave_together()
