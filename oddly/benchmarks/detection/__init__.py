"""How well each method finds wrong labels: data × noise × method, at its own cut and the best one.

Paper: Figure 11's text, precision .88 to .92 and recall .84 to .88 on CIFAR, in its own setting
(WRN-28-10, 200 epochs). Here all methods share a ResNet-18 and 30 epochs.
Command: oddly benchmark detection   prints what is stored; --next trains what is missing
Cost: `--small`: a minute on a CPU. Full: most cells took 2 to 8 minutes on one H200, with up
to ten trainings at a time; each row shows its seconds.
Numbers to match: none printed for this setting; docs/detection.md describes cases and methods,
docs/default.md has the results.

cases.py    the data, their noise, and how each is trained
jobs.py     what is trained: a network, and the arrays about the examples that it leaves behind
methods.py  the rows: which jobs a method needs, and its verdict
rivals.py   the rivals' cuts, as functions of arrays
figures.py  precision, recall, F1, average precision, AUROC, best F1
store.py    the files of jobs and cells
training.py train one job, and go on with it if it was stopped
conduct.py  run the next jobs until the time is up
table.py    what is stored, as rows
run.py      from the options of the command to rows
"""
