"""One statistic per example: by hand, against the NumPy twin, and what it refuses."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from oddly.core import LossLedger
from oddly.core import ledger as module
from oddly.core.ledger import STATISTICS
from oddly.errors import InputError
from tests.reference import ledger as twin


def record(ledger: LossLedger, losses: dict[int, float]) -> None:
    ledger.record(torch.tensor(list(losses)), torch.tensor(list(losses.values())))


def tensors_of(thing: object) -> list[Tensor]:
    return [value for value in vars(thing).values() if isinstance(value, Tensor)]


@pytest.mark.parametrize(
    ("statistic", "expected"),
    [("last", 4.0), ("ema", (0.81 * 1 + 0.9 * 1 + 4) / (0.81 + 0.9 + 1))],
)
def test_three_epochs_by_hand(statistic: str, expected: float) -> None:
    ledger = LossLedger(2, statistic)
    for loss in (1.0, 1.0, 4.0):
        record(ledger, {0: loss})
        ledger.close_epoch()
    assert ledger.values[0].item() == pytest.approx(expected)
    assert ledger.values[1].isnan()  # never seen


def test_a_weighted_fading_mean_by_hand() -> None:
    """Weights 1, 4, 2 at decay 0.5: shares 1/1; 4/4.5; 2/4.25 of the newest."""
    ledger = LossLedger(1, "ema", decay=0.5)
    found = []
    for loss, weight in ((3.0, 1.0), (12.0, 4.0), (2.5, 2.0)):
        record(ledger, {0: loss})
        ledger.close_epoch(weight)
        found.append(ledger.values.item())
    assert found == pytest.approx([3.0, 11.0, 7.0])  # the last: (0.25·3 + 2·12 + 2·2.5) / 4.25
    assert (0.25 * 3 + 0.5 * 4 * 12 + 2 * 2.5) / 4.25 == 7.0


@pytest.mark.parametrize("factor", [1e-24, 1e8])
def test_only_the_ratio_of_weights_counts(factor: float) -> None:
    """An epoch that told nothing apart has weight 1e-24."""
    plain, scaled = LossLedger(1, "ema"), LossLedger(1, "ema")
    for loss, weight in ((3.0, 1.0), (12.0, 4.0), (2.0, 0.5)):
        for ledger, by in ((plain, 1.0), (scaled, factor)):
            record(ledger, {0: loss})
            ledger.close_epoch(by * weight)
    torch.testing.assert_close(scaled.values, plain.values)


def test_an_epoch_that_hardly_counts_is_overruled_by_the_next() -> None:
    ledger = LossLedger(1, "ema")
    for loss, weight in ((9.0, 1e-24), (2.0, 1.0), (7.0, 1e-24)):
        record(ledger, {0: loss})
        ledger.close_epoch(weight)
    assert ledger.values.item() == pytest.approx(2.0)


def test_the_last_loss_does_not_heed_the_weight() -> None:
    plain, weighted = LossLedger(1, "last"), LossLedger(1, "last")
    for loss, weight in ((3.0, 5.0), (12.0, 0.1)):
        record(plain, {0: loss})
        record(weighted, {0: loss})
        plain.close_epoch()
        weighted.close_epoch(weight)
    assert torch.equal(plain.values, weighted.values)


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_the_twin_over_random_epochs(statistic: str, seed: int) -> None:
    """Examples are missing from some epochs, one from all, and some come twice in one."""
    rng = np.random.default_rng(seed)
    ledger, epochs = LossLedger(40, statistic, decay=0.7), []
    weights = rng.exponential(1.0, 6).tolist()
    for weight in weights:
        seen = rng.permutation(39)[: rng.integers(10, 39)]
        seen = np.concatenate([seen, seen[:5]])
        losses = rng.exponential(2.0, len(seen)).astype(np.float32)
        epochs.append(list(zip(seen.tolist(), losses.tolist(), strict=True)))
        for batch in np.array_split(np.arange(len(seen)), 7):
            ledger.record(torch.from_numpy(seen[batch]), torch.from_numpy(losses[batch]))
        ledger.close_epoch(weight)
    expected = twin.statistic(statistic, 40, epochs, weights, decay=0.7)
    assert np.isnan(expected[39])
    np.testing.assert_allclose(ledger.values.numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_folding_in_chunks_changes_nothing(statistic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, parts = LossLedger(10, statistic), LossLedger(10, statistic)
    for epoch in range(3):
        losses = {index: float(index + epoch) for index in range(epoch, 10)}
        record(whole, losses)
        record(parts, losses)
        whole.close_epoch()
        with monkeypatch.context() as patch:
            patch.setattr(module, "CHUNK", 3)
            parts.close_epoch()
    assert torch.equal(whole.values, parts.values)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_an_example_seen_twice_counts_once(statistic: str) -> None:
    ledger = LossLedger(2, statistic)
    record(ledger, {0: 1.0})
    record(ledger, {0: 5.0})
    ledger.close_epoch()
    assert ledger.values[0].item() == 5.0


@pytest.mark.parametrize("statistic", STATISTICS)
def test_a_missed_epoch_leaves_the_value(statistic: str) -> None:
    ledger = LossLedger(2, statistic)
    record(ledger, {0: 3.0})
    ledger.close_epoch()
    record(ledger, {1: 1.0})
    ledger.close_epoch()
    assert ledger.values.tolist() == [3.0, 1.0]


def test_values_wait_for_the_end_of_the_epoch() -> None:
    ledger = LossLedger(2, "last")
    record(ledger, {0: 3.0})
    assert ledger.values.isnan().all()


def test_an_unused_ledger_is_all_nan() -> None:
    ledger = LossLedger(3)
    ledger.close_epoch()
    assert ledger.values.shape == (3,)
    assert ledger.values.isnan().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_any_float_is_stored_as_fp32(dtype: torch.dtype) -> None:
    ledger = LossLedger(2, "last")
    ledger.record(torch.tensor([1]), torch.tensor([1.5], dtype=dtype, requires_grad=True))
    ledger.close_epoch()
    assert ledger.values.dtype == torch.float32
    assert ledger.values[1].item() == 1.5
    assert not ledger.values.requires_grad


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_index_types(dtype: torch.dtype) -> None:
    ledger = LossLedger(3, "last")
    ledger.record(torch.tensor([2, 0], dtype=dtype), torch.tensor([1.0, 2.0]))
    ledger.close_epoch()
    assert ledger.values[[2, 0]].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("statistic", STATISTICS)
def test_at_most_sixteen_bytes_per_example(statistic: str) -> None:
    ledger = LossLedger(10_000, statistic)
    record(ledger, {0: 1.0})
    ledger.close_epoch()
    assert sum(tensor.nbytes for tensor in tensors_of(ledger)) <= 16 * 10_000


@pytest.mark.parametrize("bad", [-1, 5, 10**12])
def test_index_out_of_range_raises_at_once(bad: int) -> None:
    ledger = LossLedger(5)
    with pytest.raises(IndexError, match=rf"index {bad} is outside 0\.\.4"):
        record(ledger, {0: 1.0, bad: 2.0})
    ledger.close_epoch()
    assert ledger.values.isnan().all()  # nothing of a bad batch was taken


def test_an_empty_batch_is_nothing() -> None:
    ledger = LossLedger(2)
    ledger.record(torch.empty(0, dtype=torch.int64), torch.empty(0))
    ledger.close_epoch()
    assert ledger.values.isnan().all()


def test_where_picks_rows_and_the_slots_tell_which() -> None:
    """Rows not recorded go to the spare slot, number N."""
    ledger = LossLedger(5, "last")
    index, losses = torch.tensor([4, 1, 3]), torch.tensor([1.0, 2.0, 3.0])
    slots = ledger.record(index, losses, where=torch.tensor([True, False, True]))
    assert slots.tolist() == [4, 5, 3]
    assert ledger.current.nan_to_num(-1).tolist() == [-1, -1, -1, 3, 1]
    assert ledger.record(index, losses).tolist() == [4, 1, 3]
    assert ledger.current.nan_to_num(-1).tolist() == [-1, 2, -1, 3, 1]


def test_rows_that_are_not_picked_are_checked_too() -> None:
    with pytest.raises(IndexError, match=r"index 9 is outside 0\.\.4"):
        LossLedger(5).record(torch.tensor([9]), torch.ones(1), where=torch.tensor([False]))


def test_current_holds_this_epoch_alone() -> None:
    ledger = LossLedger(3, "last")
    assert ledger.current.shape == (3,)
    assert ledger.current.isnan().all()
    record(ledger, {0: 1.0, 2: 3.0})
    assert ledger.current[[0, 2]].tolist() == [1.0, 3.0]
    ledger.close_epoch()
    assert ledger.current.isnan().all()
    assert ledger.values[[0, 2]].tolist() == [1.0, 3.0]


@pytest.mark.parametrize("statistic", STATISTICS)
def test_saved_in_the_middle_of_an_epoch_it_goes_on_alike(statistic: str) -> None:
    unbroken, saved = LossLedger(4, statistic), LossLedger(4, statistic)
    for ledger in (unbroken, saved):
        record(ledger, {0: 1.0, 1: 2.0})
        ledger.close_epoch(3.0)
        record(ledger, {0: 3.0})
    file = io.BytesIO()
    torch.save(saved.state_dict(), file)
    file.seek(0)
    resumed = LossLedger(4, statistic)
    resumed.load_state_dict(torch.load(file, weights_only=True))
    for ledger in (unbroken, resumed):
        record(ledger, {1: 4.0, 2: 5.0})
        ledger.close_epoch()
    assert torch.equal(unbroken.values.nan_to_num(-1), resumed.values.nan_to_num(-1))
    assert unbroken.values.isnan().tolist() == [False, False, False, True]


def test_a_loaded_ledger_does_not_write_into_the_state() -> None:
    first = LossLedger(2, "last")
    record(first, {0: 1.0})
    state, second = first.state_dict(), LossLedger(2, "last")
    second.load_state_dict(state)
    record(second, {0: 9.0})
    first.close_epoch()
    assert first.values[0].item() == 1.0


def test_an_unused_ledger_can_be_saved() -> None:
    ledger = LossLedger(2, "last")
    ledger.load_state_dict(LossLedger(2, "last").state_dict())
    record(ledger, {1: 2.0})
    ledger.close_epoch()
    assert ledger.values[1].item() == 2.0


def test_state_of_another_size_is_refused() -> None:
    saved = LossLedger(4)
    record(saved, {0: 1.0})
    with pytest.raises(InputError, match="saved ledger has 4 examples, not 5"):
        LossLedger(5).load_state_dict(saved.state_dict())
    with pytest.raises(InputError, match="saved ledger has 4 examples, not 5"):
        LossLedger(5).load_state_dict(LossLedger(4).state_dict())  # before any loss
    with pytest.raises(InputError, match="saved ledger has statistic ema, not last"):
        LossLedger(4, "last").load_state_dict(LossLedger(4, "ema").state_dict())
    old = LossLedger(4).state_dict()
    del old["examples"], old["statistic"]
    LossLedger(4).load_state_dict(old)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"statistic": "median"}, "statistic must be one of last, ema, got 'median'"),
        ({"decay": 1.0}, r"decay must be in \[0, 1\), got 1"),
        ({"decay": -0.1}, r"decay must be in \[0, 1\), got -0\.1"),
        ({"decay": math.nan}, r"decay must be in \[0, 1\), got nan"),
    ],
)
def test_bad_settings(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        LossLedger(3, **options)  # type: ignore[arg-type]


@pytest.mark.gpu
@pytest.mark.parametrize("bad", [-1, 5])
def test_on_a_gpu_a_bad_index_is_reported_by_close_epoch(bad: int) -> None:
    ledger = LossLedger(5, "last")
    ledger.record(torch.tensor([0, bad, bad]), torch.ones(3, device="cuda"))
    with pytest.raises(IndexError, match=r"2 indices passed to observe\(\) are outside 0\.\.4"):
        ledger.close_epoch()


@pytest.mark.gpu
@pytest.mark.parametrize("statistic", STATISTICS)
def test_gpu_and_cpu_agree(statistic: str) -> None:
    on_cpu, on_gpu = LossLedger(50, statistic), LossLedger(50, statistic)
    for epoch in range(3):
        index = torch.randperm(50)[:30]
        losses = torch.rand(30) + epoch
        on_cpu.record(index, losses)
        on_gpu.record(index, losses.cuda())
        on_cpu.close_epoch()
        on_gpu.close_epoch()
    assert on_gpu.values.is_cuda
    torch.testing.assert_close(on_gpu.values.cpu(), on_cpu.values, equal_nan=True)
