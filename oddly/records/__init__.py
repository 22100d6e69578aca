"""The run folder: what a training run leaves behind, how it is written and read. No torch here.

config.json          settings, and the version of this format; the first file written
environment.json     versions and hardware
metrics.jsonl        one row per epoch
verdicts.parquet     one row per training example
truth.parquet        true labels where known, apart from everything a method can see
counterfactual.json  what a random label's loss would be: histogram and percentiles
thumbnails.parquet   small pictures of the suspects and of some others, where data lies in memory
model.safetensors, checkpoint.pt   the weights, and the state to resume from (by the engine)
summary.json         the run in a few numbers
done                 empty; the last file written
.oddly-lock          exists while a process writes to the folder; contains its id
"""

from __future__ import annotations

from oddly.records.copies import Twin, group_twins, read_twins
from oddly.records.files import (
    about_formulas,
    read_table,
    replacing,
    write_atomic,
    write_csv,
    write_json,
)
from oddly.records.folder import FORMAT_VERSION, Run, RunWriter, check_free
from oddly.records.listed import count_unread, read_list
from oddly.records.lock import FolderBusy, writing
from oddly.records.surroundings import config_hash, environment
from oddly.records.tables import DECIDED, SAME_PICTURE, VerdictTable, has_reason, score_verdict
from oddly.records.thumbnails import choose_pictured, choose_stored

__all__ = [
    "DECIDED",
    "FORMAT_VERSION",
    "SAME_PICTURE",
    "FolderBusy",
    "Run",
    "RunWriter",
    "Twin",
    "VerdictTable",
    "about_formulas",
    "check_free",
    "choose_pictured",
    "choose_stored",
    "config_hash",
    "count_unread",
    "environment",
    "group_twins",
    "has_reason",
    "read_list",
    "read_table",
    "read_twins",
    "replacing",
    "score_verdict",
    "write_atomic",
    "write_csv",
    "write_json",
    "writing",
]
