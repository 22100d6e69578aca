from __future__ import annotations

import pytest
import torch

from oddly.engine.fast import no_search


def test_kernels_are_searched_for_again_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", True)
    with pytest.raises(ZeroDivisionError), no_search():
        assert not torch.backends.cudnn.benchmark
        _ = 1 / 0
    assert torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = False
    with no_search():
        pass
    assert not torch.backends.cudnn.benchmark
