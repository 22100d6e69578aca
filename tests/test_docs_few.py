"""What docs/constants.md says of few examples, against the stored trainings."""

from __future__ import annotations

from tests.pages import ROOT, stored

PAGE = (ROOT / "docs/constants.md").read_text(encoding="utf-8")
SECTION = PAGE.split("## Few examples\n")[1].split("\n##")[0]
STORED = {
    (row["classes"], row["examples"], row["counterfactual"], row["noise"]): row
    for row in stored("few_examples_digits.json")["rows"]
}


def cell(classes: int, examples: int, counterfactual: str) -> str:
    clean, some, many = (STORED[classes, examples, counterfactual, n] for n in (0.0, 0.2, 0.4))
    f1 = ", ".join(f"{row['f1']:.2f}".removeprefix("0") for row in (some, many))
    refused = sum(row["refused"] for row in (clean, some, many))
    return f"{f1}; {100 * clean['right_labels_lost']:.0f} %; {refused}"


def test_the_table_is_what_is_stored() -> None:
    header, *rows = (
        line.strip("| ").split(" | ") for line in SECTION.splitlines() if line[:2] == "| "
    )
    names = [name.split()[0].strip("`") for name in header[1:]]
    sizes = sorted({(classes, examples) for classes, examples, _, _ in STORED})
    assert rows == [
        [f"{n} of {k} classes", *(cell(k, n, name) for name in names)] for k, n in sizes
    ]
    assert all(row["trainings"] == 8 for row in STORED.values())


def test_who_wins_where() -> None:
    """The rule: sentinels from 100 examples on, made-up wrong labels below."""
    better: dict[float, list[bool]] = {0.2: [], 0.4: []}
    for (classes, examples, name, noise), row in STORED.items():
        if name == "sentinels" and examples >= 100 and noise:
            rival = STORED[classes, examples, "weights", noise]
            better[noise].append(row["f1"] > rival["f1"])
        if name == "wrong_label" and examples < 100 and noise == 0.0:
            others = (STORED[classes, examples, other, noise] for other in ("weights", "sentinels"))
            assert all(row["right_labels_lost"] < other["right_labels_lost"] for other in others)
    told = [f"{sum(won)} of {len(won)}" for won in better.values()]
    text = " ".join(SECTION.split())
    assert f"in {told[0]} rows with 20 % noise, in {told[1]} with 40 %" in text
