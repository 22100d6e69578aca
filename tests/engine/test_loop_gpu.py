"""The loop on a GPU: CUDA graphs change the speed, not what is seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from oddly.data.base import LabelledData
from oddly.data.synthetic import synthetic
from oddly.engine.build import build
from oddly.engine.config import RunConfig
from oddly.engine.fast import fast_model
from oddly.engine.loop import run_config, train_epoch
from oddly.engine.watch import Watcher
from oddly.methods.odd import ODD

# What torch.compile warns of (TensorFloat32 could be faster, …) is not ours.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore")]
EXAMPLES, BATCH = 500, 64  # seven whole batches and a rest, which is not compiled


@pytest.fixture(scope="module")
def data() -> LabelledData:
    return synthetic(5, EXAMPLES // 5, 16)


def config(**options: object) -> RunConfig:
    given = {"model": "wrn-10-1", "epochs": 2, "batch_size": BATCH, "device": "cuda", **options}
    return RunConfig.from_options("synthetic", given)


@pytest.mark.parametrize(
    ("counterfactual", "precision"), [("sentinels", "bf16"), ("weights", "fp32")]
)
def test_compiled_or_not_the_same_losses_are_noted(
    data: LabelledData, counterfactual: str, precision: str
) -> None:
    """The learning rate is 0: the network stays, so each example's loss is its batch's."""
    seen = []
    for compiled in (False, True):
        parts = build(
            config(
                learning_rate=0.0,
                compile=compiled,
                precision=precision,
                counterfactual=counterfactual,
                prune_after=2,
            ),
            data,
        )
        parts.method.begin_epoch(parts.context)
        train_epoch(parts, fast_model(parts), 0, Watcher())
        assert isinstance(parts.method, ODD)
        parts.method.state_dict()  # notes what waits
        seen.append(parts.method.denoiser.ledger.current.cpu())
    assert not seen[0].isnan().any() and not seen[1].isnan().any()
    # Rounding (TF32, bf16, fused or not) differs; those of another step would be as far as chance.
    assert float((seen[0] - seen[1]).abs().mean()) < 0.2 * float(seen[0].std())


def test_a_compiled_run_prunes_and_ends(data: LabelledData, tmp_path: Path) -> None:
    options = {"compile": True, "noise": 0.4, "epochs": 4, "prune_after": 2, "percentile": 50.0}
    run = run_config(config(**options), tmp_path / "run", data)
    kept = [row["kept"] for row in run.metrics]
    assert kept[:2] == [EXAMPLES] * 2 and max(kept[2:]) < EXAMPLES
    assert all(row["train_loss"] > 0 for row in run.metrics)
