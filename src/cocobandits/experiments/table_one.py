"""The six criteria of the paper's Table 1, and which of them each policy meets as built here.

A verdict is about behaviour, not about what a paper says of itself: each criterion has a test that
tries it on every policy, and the table below has to say what the test finds. Where the paper's own
table says otherwise, the page of the comparison shows both.
"""

from typing import Literal, NamedTuple

Verdict = Literal["yes", "no", "n/a"]


class Criterion(NamedTuple):
    """A question, and the test that answers it for every policy.

    Attributes:
        short: as in the paper's table.
        name: in words.
        question: what the test tries.
        test: its name in tests/contracts/test_table_one.py.
    """

    short: str
    name: str
    question: str
    test: str


CRITERIA = (
    Criterion(
        "MT",
        "multi-task",
        "Is a newcomer given the arm that was best for others?",
        "test_a_newcomer_is_given_what_was_best_for_others",
    ),
    Criterion(
        "PC",
        "partial context",
        "Do rewards of one arm tell which of two others is better, because they reveal a hidden "
        "kind of user?",
        "test_one_arm_tells_about_another_by_the_hidden_kind",
    ),
    Criterion(
        "NPLRS",
        "nonparametric latent reward structure",
        "Is a population of two kinds believed to have two modes?",
        "test_two_modes_are_believed_in",
    ),
    Criterion(
        "UD",
        "uncertainty distinction",
        "Can it tell what is not known about this user from what is not known about everybody?",
        "test_uncertainties_are_told_apart",
    ),
    Criterion(
        "DR",
        "dynamic recruitment",
        "Can somebody join in the middle, and be served by what they themselves gave?",
        "test_somebody_can_join_at_any_time",
    ),
    Criterion(
        "CI",
        "concurrent interaction",
        "Does a reward of one user tell about another who is being served already?",
        "test_users_learn_from_each_other_while_they_are_served",
    ),
)

_ALL: tuple[Verdict, ...] = ("yes", "yes", "yes", "yes", "yes", "yes")
# In the order of the criteria.
TABLE: dict[str, tuple[Verdict, ...]] = {
    "coids": _ALL,
    "npm-ts": _ALL,
    "gids": _ALL,
    "mtts": ("yes", "no", "no", "no", "yes", "yes"),
    "hierts": ("yes", "yes", "no", "no", "yes", "yes"),
    "hlinucb": ("no", "yes", "n/a", "no", "yes", "no"),
    "hlinucb-t": ("yes", "yes", "n/a", "no", "yes", "yes"),
    "kmtl-ucb": ("yes", "no", "n/a", "no", "yes", "yes"),
    "gradband": ("no", "no", "n/a", "no", "yes", "no"),
    "meta-ts": ("yes", "no", "no", "no", "yes", "no"),
    "ada-ts": ("yes", "no", "no", "no", "yes", "no"),
    "robustagg": ("yes", "no", "n/a", "no", "yes", "yes"),
    "rome": ("yes", "no", "n/a", "no", "yes", "yes"),
    "ind-ts": ("no", "no", "no", "no", "yes", "no"),
    "uniform": ("no", "no", "n/a", "no", "no", "no"),
}
# What the paper says of them; n/a where it says so.
PUBLISHED: dict[str, tuple[Verdict, ...]] = {
    "coids": _ALL,
    "npm-ts": _ALL,
    "gids": _ALL,
    "hlinucb": ("no", "yes", "no", "no", "no", "no"),
    "kmtl-ucb": ("yes", "no", "n/a", "no", "no", "no"),
    "gradband": ("no", "no", "n/a", "no", "no", "no"),
    "robustagg": ("yes", "n/a", "n/a", "no", "no", "yes"),
    "mtts": ("yes", "no", "no", "no", "no", "yes"),
    "hierts": ("yes", "n/a", "no", "no", "yes", "yes"),
    "rome": ("yes", "no", "n/a", "no", "yes", "yes"),
}
