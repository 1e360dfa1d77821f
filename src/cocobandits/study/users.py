"""The users of a study: who enrolled, what is known of them, who has withdrawn.

Owns names, numbers and contexts, what all contexts together say of values that are missing, and the
points that stand for a context of which not all is known. Knows nothing of decisions or policies.
"""

import math
from bisect import bisect_left, insort

import numpy as np

from cocobandits.populations.features import FeatureKinds
from cocobandits.study.context import FEATURE_RANGE, Feature, standardise_context
from cocobandits.types import FloatVector, Truths

Points = np.ndarray[tuple[int, int], np.dtype[np.float64]]

NUM_POINTS = 8
# How many users the prior of a feature counts for: uniform on the range, or over the categories.
PRIOR_WORTH = 1
_GOLDEN = (math.sqrt(5) - 1) / 2


class Users:
    """Everyone who ever enrolled, numbered from zero in the order of enrolment.

    Attributes:
        numbers: of all users, also of those who have withdrawn, by name.
        names: of all users.
        contexts: of each user, in the user's units; NaN is missing.
        is_late: of each user, which features were missing at enrolment.
        withdrawn: names of those who have.
    """

    def __init__(self, features: tuple[Feature, ...]) -> None:
        self._features = features
        self._completion = Completion(tuple(feature.num_categories for feature in features))
        self.numbers: dict[str, int] = {}
        self.names: list[str] = []
        self.contexts: list[FloatVector] = []
        self.is_late: list[Truths] = []
        self.withdrawn: set[str] = set()

    @property
    def enrolled(self) -> tuple[str, ...]:
        """Those who have not withdrawn."""
        return tuple(name for name in self.names if name not in self.withdrawn)

    @property
    def num_missing(self) -> tuple[int, ...]:
        """For each feature, of how many enrolled users it is not known."""
        numbers = range(len(self._features))
        num_enrolled = len(self.enrolled)
        return tuple(num_enrolled - self._completion.num_seen(number) for number in numbers)

    @property
    def were_all_known(self) -> bool:
        """Whether every user had a complete context at enrolment."""
        return not any(is_late.any() for is_late in self.is_late)

    def add(self, user: str, context: FloatVector) -> None:
        """Add a user."""
        self.numbers[user] = len(self.names)
        self.names.append(user)
        self.contexts.append(context)
        self.is_late.append(np.isnan(context))
        self._completion.add(self._standardised(context))

    def replace(self, number: int, context: FloatVector) -> None:
        """Record what is known of a user now."""
        self._completion.remove(self._standardised(self.contexts[number]))
        self._completion.add(self._standardised(context))
        self.contexts[number] = context

    def withdraw(self, user: str) -> None:
        """Forget a user's values in what is filled in for others."""
        self.withdrawn.add(user)
        self._completion.remove(self._standardised(self.contexts[self.numbers[user]]))

    def complete(self, context: FloatVector, number: int | None = None) -> FloatVector | Points:
        """Standardise a user's context, with points where something is missing.

        None as number stands for nobody in particular.
        """
        return self._completion.complete(self._standardised(context), number)

    def _standardised(self, context: FloatVector) -> FloatVector:
        return standardise_context(self._features, context)


class Completion:
    """The values of all users so far, feature by feature, in standardised units.

    A missing feature is integrated out: its points are quantiles of the values that users have had,
    so that an average over points is an average over that distribution. Which quantiles differs
    from user to user, so that what is rare has its share among all. Features are taken one by one;
    that two of them go together is not learned.

    Args:
        kinds: for each feature its number of categories, or None if it is continuous.
    """

    def __init__(self, kinds: FeatureKinds) -> None:
        self._kinds = kinds
        self._values: list[list[float]] = [[] for _ in kinds]  # sorted, whoever came first

    def add(self, encoded: FloatVector) -> None:
        """Count a user's values in; what is missing counts for nothing."""
        for values, value in zip(self._values, encoded, strict=True):
            if not math.isnan(value):
                insort(values, float(value))

    def remove(self, encoded: FloatVector) -> None:
        """Take a user's values out again."""
        for values, value in zip(self._values, encoded, strict=True):
            if not math.isnan(value):
                del values[bisect_left(values, float(value))]

    def num_seen(self, feature: int) -> int:
        """Count the users whose value is known."""
        return len(self._values[feature])

    def complete(self, encoded: FloatVector, user: int | None = None) -> FloatVector | Points:
        """Return the context itself if all of it is known, or else equally likely points.

        Every missing feature has a quantile in each of `NUM_POINTS` equal parts, in an order of its
        own: at the midpoints, or at a place that depends on the number of the user.
        """
        is_missing = np.isnan(encoded)
        if not is_missing.any():
            return encoded
        points = np.tile(encoded, (NUM_POINTS, 1))
        # Golden steps: the places of any few users in a row are far apart.
        place = 0.5 if user is None else (0.5 + _GOLDEN * (user + 1)) % 1.0
        levels = (np.arange(NUM_POINTS) + place) / NUM_POINTS
        for feature in map(int, np.flatnonzero(is_missing)):
            points[:, feature] = self._quantiles(feature, levels)[_order(feature)]
        return points

    def _quantiles(self, feature: int, levels: FloatVector) -> FloatVector:
        values = np.array(self._values[feature])
        kind = self._kinds[feature]
        return _spread(values, levels) if kind is None else _allot(values, kind, levels)


def _spread(values: FloatVector, levels: FloatVector) -> FloatVector:
    """Compute quantiles of the values seen, smoothed, and mixed with a uniform prior.

    Each value stands for the stretch halfway to its neighbours, the outermost for as much outwards
    as inwards. The distribution function is then linear between the ends of the stretches.
    """
    low, high = FEATURE_RANGE
    ends = np.concatenate([values[:1], (values[1:] + values[:-1]) / 2, values[-1:]])
    if len(values) > 1:
        ends[0] = max(low, values[0] - (values[1] - values[0]) / 2)
        ends[-1] = min(high, values[-1] + (values[-1] - values[-2]) / 2)
    prior = PRIOR_WORTH * (ends - low) / (high - low)
    below = (prior + np.arange(len(ends))) / (PRIOR_WORTH + len(values))
    return np.interp(levels, [0.0, *below, 1.0], [low, *ends, high])


def _allot(values: FloatVector, num_categories: int, levels: FloatVector) -> FloatVector:
    """Find the categories at these levels of the distribution function.

    Each has its share of the points, rounded up or down; on average over all places, exactly.
    """
    counts = np.bincount(values.astype(int), minlength=num_categories)
    parts = num_categories * counts + PRIOR_WORTH  # the prior's user is split among all
    reached = np.cumsum(parts)[:-1] / parts.sum()
    return np.searchsorted(reached, levels, side="right").astype(float)


def _order(feature: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Tell which part each point takes its value of a feature from, so that features are not alike.

    The steps 1 to 8 modulo 17, folded, are eight orders of which any two have a correlation between
    -0.2 and 0 (a good lattice; steps of irrational length are at times mirror images on so few
    points). Beyond eight features, which so few points cannot keep apart, orders are shifted.
    """
    modulus = 2 * NUM_POINTS + 1
    steps = np.arange(1, NUM_POINTS + 1) * (feature % NUM_POINTS + 1) % modulus
    return np.roll(np.minimum(steps, modulus - steps) - 1, 3 * (feature // NUM_POINTS))
