"""Array aliases with the axis names used everywhere.

One list of axes: particle, parameter, mode, cell, arm, feature, term, component, coefficient,
user, value, draw, point, source, node. A name in an annotation is a claim that the tests
check at run time.
"""

from typing import Literal

import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int

# Outside of compiled functions.
FloatVector = np.ndarray[tuple[int], np.dtype[np.float64]]
Truths = np.ndarray[tuple[int], np.dtype[np.bool_]]

Scalar = Float[Array, ""]
# A number that may be traced or plain.
Number = Float[ArrayLike, ""]
RngKey = Array

Particles = Float[Array, "particle parameter"]
Matrix = Float[Array, "parameter parameter"]
Parameters = Float[Array, " parameter"]
LogWeights = Float[Array, " particle"]
PerParticle = Float[Array, " particle"]
Ancestors = Int[Array, " particle"]

Context = Float[Array, " feature"]
# A context that is known, or equally likely points where some of it is not.
PossibleContext = Float[Array, "*point feature"]
ArmVector = Float[Array, " arm"]
ArmCells = Float[Array, "arm cell"]
ArmValues = Float[Array, "arm value"]
Values = Float[Array, " value"]
# Possible next rewards: the same of all arms, or of each arm its own.
Rewards = Float[Array, "*arm value"]

# What has become of a decision: open ones are returned again; a late reward of a closed one is
# welcome; a reward that was taken back leaves its decision retracted.
Status = Literal["open", "closed", "rewarded", "retracted"]
