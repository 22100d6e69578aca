"""What `oddly clean` prints of its findings, and what to do next."""

from __future__ import annotations

import json as json_format
import shlex
from dataclasses import asdict

from oddly.clean.findings import Findings, summarise, suspects_of
from oddly.cli.again import command_again
from oddly.cli.app import say
from oddly.engine.outcome import MEASURED_FROM
from oddly.errors import count
from oddly.records import Run


def show(run: Run, top: int | None, json: bool) -> None:
    """Print the findings, and what to do next."""
    findings = summarise(run)
    if json:
        print(json_format.dumps({**asdict(findings), "run": str(run.path)}))
        return
    say(*tell_findings(findings))
    if top is not None:
        worst = suspects_of(run, top)
        say("", f"{len(worst):,} most suspicious:")
        for row in worst.itertuples():
            say(f"  {row.id}  {row.given_name} → {row.suggested_name}")
    place = shlex.quote(str(run.path))
    say("", f"report  {run.path / 'report.html'}", f"tables  {run.path / 'verdicts.csv'}")
    if findings.doubt and run.config.get("backbone") and not run.config.get("fine_tune"):
        say(f"try     {shlex.join(_fine_tune(run))}  # train the whole network, not just a head")
    those_kept = "" if findings.suspects else " --top 50"  # otherwise there is nothing to review
    say(f"next    oddly review {place}{those_kept}")


def _fine_tune(run: Run) -> list[str]:
    """The command for a fine-tuned run, which can learn what frozen features do not show."""
    for_a_head = ("model", "epochs", "batch_size", "learning_rate", "prune_after", "image_size")
    return [*command_again(run, run.config.get("labels"), leave_out=for_a_head), "--fine-tune"]


def tell_findings(findings: Findings) -> list[str]:
    lines = [_headline(findings)]
    if findings.doubt:
        lines.append(findings.doubt)
    if findings.by_rule:
        lines.append(findings.by_rule)
    if findings.readmitted:
        were = "was" if findings.readmitted == 1 else "were"
        lines.append(f"{findings.readmitted:,} more {were} suspected at first, then cleared")
    if findings.decided:
        many = "label was" if findings.decided == 1 else "labels were"
        left = "is" if findings.decided == 1 else "are"
        lines.append(f"{findings.decided:,} {many} set by a person and {left} left unchanged")
    lines.append(tell_share(findings))
    both = ((findings.unreadable, "image"), (findings.closed, "folder"))
    if unread := [count(number, what) for number, what in both if number]:
        lines.append(f"{' and '.join(unread)} could not be read (unreadable.csv)")
    if findings.duplicates:
        lines.append(_tell_copies(findings))
    if findings.spreadsheet:
        lines.append(findings.spreadsheet)
    if findings.classes:
        lines += ["", "classes with the largest share of suspects"]
        lines += [f"  {hit:,} of {size:,} {name}" for name, hit, size in findings.classes]
    if findings.mostly_suspect:
        named = [f"{name} ({hit:,} of {size:,})" for name, hit, size in findings.mostly_suspect]
        advice = "verdicts on rare or hard classes are unreliable, so look before you remove"
        lines.append(f"more than half are suspects in {', '.join(named)}: {advice}")
    if findings.pairs:
        lines += ["", "most frequent pairs, given → suggested"]
        lines += [f"  {given} → {other}: {number:,}" for given, other, number in findings.pairs]
    return lines


def _headline(findings: Findings) -> str:
    number = f"{findings.suspects:,} of {findings.images:,} images"
    share = f"({100 * findings.suspects / findings.images:.1f} %)"
    if findings.suspects and findings.suspects == findings.contradicted:
        are = "is a suspect" if findings.suspects == 1 else "are suspects"
        which = "a copy with another label"
        if findings.suspects > 1:
            which = "all of them copies with different labels"
        return f"{number} {are} {share}, {which}"
    doubt = ", but this verdict is unreliable:" if findings.doubt else ""
    look = "looks" if findings.suspects == 1 else "look"
    return f"{number} {look} mislabelled {share}{doubt}"


def tell_share(findings: Findings) -> str:
    if (noise := findings.estimated_noise) is None:
        why = "too few images" if findings.images < MEASURED_FROM else "no labels were planted"
        return f"no estimate of the share of wrong labels: {why}"
    rate, low, high = (100 * noise[name] for name in ("rate", "low", "high"))
    bounds = f"between {low:.1f} and {high:.1f} %"
    meaning = "the lower bound counts only labels that look entirely random"
    doubt = "; also unreliable" if findings.doubt else ""
    return f"estimated share of wrong labels: {rate:.1f} %, {bounds} ({meaning}){doubt}"


def _tell_copies(findings: Findings) -> str:
    if findings.duplicates > 1:
        line = f"{findings.duplicates:,} pictures occur more than once"
        which = f", {findings.conflicting:,} of them with different labels"
    elif findings.conflicting:
        line, which = f"1 picture occurs {findings.copies:,} times", ", with different labels"
    else:
        line = "1 picture occurs more than once"
    if findings.conflicting:
        many = "copy is a suspect" if findings.contradicted == 1 else "copies are suspects"
        every = "all " if findings.contradicted == findings.copies else ""
        why = "" if every else " because of this"
        line += f"{which}: {every}{findings.contradicted:,} {many}{why}"
    return f"{line} (duplicates.csv)"
