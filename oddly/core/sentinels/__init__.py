"""Our default: judge by labels that are known to be wrong, because we replaced them.

The paper's rule takes only a doubt from here (`learnt`). Read in this order: cut, learnt, planting,
occurring, percentile, confusion, one_way, called, wrong_label.
"""
