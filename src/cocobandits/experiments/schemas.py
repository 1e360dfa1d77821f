"""The columns of a run folder's tables, for who writes them and who reads them.

All counts run from zero; regrets, rewards and bin edges are in units of reward.
"""

import pyarrow as pa

_CELL = [("environment", pa.string()), ("policy", pa.string()), ("seed", pa.int64())]

RECORDS = pa.schema(
    [
        *_CELL,
        ("step", pa.int64()),
        ("round", pa.int64()),
        ("user", pa.int64()),
        ("user_step", pa.int64()),
        ("arm", pa.int64()),
        ("probability", pa.float64()),
        ("reward", pa.float64()),
        ("regret", pa.float64()),
    ]
)

# Round 0 is before any reward, round r after r rounds.
EVALUATIONS = pa.schema([*_CELL, ("round", pa.int64()), ("regret", pa.float64())])

HEALTH = pa.schema(
    [
        *_CELL,
        ("step", pa.int64()),
        ("ess", pa.float64()),
        ("acceptance_rate", pa.float64()),
        ("num_moves", pa.int64()),
        ("distinct_ancestors", pa.int64()),
        ("start_correlation", pa.float64()),
    ]
)

# What particles learned besides the population: 5 %, 50 % and 95 % points, in the study's units.
HYPERPARAMETERS = pa.schema(
    [
        *_CELL,
        ("step", pa.int64()),
        ("name", pa.string()),
        ("low", pa.float64()),
        ("median", pa.float64()),
        ("high", pa.float64()),
    ]
)

# Time counts the users that were observed in full.
DENSITIES = pa.schema(
    [
        ("time", pa.int64()),
        ("context", pa.float64()),
        ("arm", pa.int64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("density", pa.float64()),
        ("truth", pa.float64()),
    ]
)
