"""The judge: what is wrong with a history.  Pure: a history in, violations out.

Delivery is at least once, so much is allowed: the same event again, a lost answer,
a retry.  Each judge's docstring says what is not.
"""

from . import judge_order, judge_record, judge_wire
from .case import Case

JUDGES = (*judge_wire.JUDGES, *judge_order.JUDGES, *judge_record.JUDGES)


def judge(history):
    case = Case(history)
    return [violation for each in JUDGES for violation in each(case)]
