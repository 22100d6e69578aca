"""Who finds the wrong labels: data × noise × method, each at its own cut and at its best one.

`oddly benchmark detection` prints what is stored; `--next` trains what is missing.

cases.py    the data, their noise, and how each is trained
jobs.py     what is trained: a network, and the arrays about the examples that it leaves
methods.py  the rows: which jobs a method needs, and its verdict
rivals.py   the rivals' cuts, as functions of arrays
figures.py  precision, recall, F1, average precision, AUROC, best F1
store.py    the files of jobs and cells
training.py train one job, and go on with it where it was stopped
conduct.py  run the next jobs until the time is up
table.py    what is stored, as rows
run.py      from the options of the command to rows
"""
