from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from oddly.errors import InputError
from oddly.models import build_model
from oddly.models.weights import load_weights


@pytest.mark.parametrize("suffix", [".safetensors", ".pt"])
def test_weights_come_back_without_the_head(tmp_path: Path, suffix: str) -> None:
    torch.manual_seed(0)
    source, target = (build_model("resnet8", classes, 3, 16) for classes in (7, 4))
    path = tmp_path / f"weights{suffix}"
    state = source.state_dict()
    save_file(state, path) if suffix == ".safetensors" else torch.save(state, path)
    head = target.fc.weight.clone()  # type: ignore[union-attr, operator]
    load_weights(target, str(path), "resnet8")
    assert torch.equal(target.stem.weight, source.stem.weight)  # type: ignore[union-attr]
    assert torch.equal(target.fc.weight, head)  # type: ignore[union-attr, arg-type]


def test_another_network_is_refused(tmp_path: Path) -> None:
    save_file(build_model("resnet8", 4, 3, 16).state_dict(), tmp_path / "a.safetensors")
    with pytest.raises(InputError, match=r"\d+ of \d+ tensors of wrn-10-1 are missing"):
        load_weights(build_model("wrn-10-1", 4, 3, 16), str(tmp_path / "a.safetensors"), "wrn-10-1")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, r"w\.pt: no such file"),
        (b"junk", r"w\.pt cannot be read: damaged, or not a file of plain tensors"),
        (b"path,label\na.png,cat\n", r"w\.pt cannot be read: damaged, or not"),
    ],
)
def test_a_bad_file_is_one_clear_line(tmp_path: Path, content: bytes | None, told: str) -> None:
    path = tmp_path / "w.pt"
    if content:
        path.write_bytes(content)
    with pytest.raises(InputError, match=told):
        load_weights(build_model("resnet8", 4, 3, 16), str(path), "resnet8")


@pytest.mark.parametrize("name", ["resnet8", "timm:resnet10t"])
def test_only_the_final_layer_may_be_missing(tmp_path: Path, name: str) -> None:
    model = build_model(name, 4, 3, 32)
    state = model.state_dict()
    torch.save({k: v for k, v in state.items() if not k.startswith("fc.")}, tmp_path / "body.pt")
    load_weights(model, str(tmp_path / "body.pt"), name)
    first = next(iter(state))
    torch.save({k: v for k, v in state.items() if k != first}, tmp_path / "beheaded.pt")
    with pytest.raises(InputError, match=f"1 of .* missing .*, first {first}"):
        load_weights(model, str(tmp_path / "beheaded.pt"), name)
