"""Find a model's final linear layer: the `fc` that the paper's counterfactual needs."""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

from oddly.errors import InputError

# Where torchvision, timm and Hugging Face keep it; tried before searching all layers.
USUAL_NAMES = ("fc", "classifier", "head", "heads", "head.fc", "linear", "cls_classifier")


def find_head(model: nn.Module, num_classes: int, name: str | None = None) -> nn.Linear:
    """Find the `nn.Linear` that turns features into K logits.

    Tries, in order: the name you give; `get_classifier()` (timm); usual attribute names; the last
    linear layer with K outputs that is not an auxiliary one.
    """
    model = _unwrap(model)
    if name is not None:
        return _named_head(model, num_classes, name)
    for candidate in _candidates(model):
        head = _last_linear(candidate)
        if head is not None and head.out_features == num_classes:
            return head
    raise InputError(
        f"no final linear layer with {num_classes} outputs found in {type(model).__name__}"
        f" ({_describe_linears(model)}); name it with head='path.to.layer'"
    )


def _unwrap(model: nn.Module) -> nn.Module:
    """The model inside DistributedDataParallel, DataParallel or torch.compile."""
    while True:
        children = dict(model.named_children())  # a wrapper holds only the model
        if len(children) != 1 or not children.keys() & {"_orig_mod", "module"}:
            return model
        (model,) = children.values()


def _named_head(model: nn.Module, num_classes: int, name: str) -> nn.Linear:
    try:
        head = model.get_submodule(name)
    except AttributeError:
        raise InputError(
            f"{type(model).__name__} has no layer '{name}' ({_describe_linears(model)})"
        ) from None
    if not isinstance(head, nn.Linear) or head.out_features != num_classes:
        what = head if isinstance(head, nn.Linear) else type(head).__name__
        raise InputError(f"layer '{name}' is {what}, not a linear layer with {num_classes} outputs")
    return head


def _candidates(model: nn.Module) -> Iterator[nn.Module]:
    get_classifier = getattr(model, "get_classifier", None)
    if callable(get_classifier):
        found = get_classifier()
        found = found[0] if isinstance(found, tuple) else found  # distilled models return two
        if isinstance(found, nn.Module):
            yield found
    for name in USUAL_NAMES:
        try:
            yield model.get_submodule(name)
        except AttributeError:
            continue
    linears = [(n, m) for n, m in model.named_modules() if isinstance(m, nn.Linear)]
    yield from (m for n, m in reversed(linears) if "aux" not in n.lower())


def _last_linear(module: nn.Module) -> nn.Linear | None:
    linears = [m for m in module.modules() if isinstance(m, nn.Linear)]
    return linears[-1] if linears else None


def _describe_linears(model: nn.Module) -> str:
    linears = [
        f"{name}: {module.in_features}→{module.out_features}"
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear)
    ]
    return f"linear layers: {', '.join(linears[-5:])}" if linears else "no linear layers"
