import math
import re

import numpy as np
import pytest

from cocobandits.errors import ConfigurationError, GridTooLargeError
from cocobandits.populations.log_density import (
    Axis,
    CategoricalAxis,
    LogDensityConfig,
    LogDensityModel,
)


def test_axis_places_nodes_and_edges():
    """Count by hand: three nodes on [-1, 2] are 1.5 apart, each in the middle of its cell."""
    axis = Axis(-1.0, 2.0, 3)
    assert axis.spacing == 1.5
    np.testing.assert_allclose(axis.nodes, [-1.0, 0.5, 2.0])
    np.testing.assert_allclose(axis.edges, [-1.75, -0.25, 1.25, 2.75])


@pytest.mark.parametrize(
    ("low", "high"),
    [(1.0, 1.0), (2.0, -2.0), (math.nan, 1.0), (0.0, math.inf), (-math.inf, 0.0)],
)
def test_axis_refuses_an_empty_or_infinite_range(low, high):
    """The message shows what was given."""
    with pytest.raises(ConfigurationError, match=rf"low < high; got low={low}, high={high}"):
        Axis(low, high, 4)


def test_axis_refuses_a_single_node():
    """The message shows what was given."""
    with pytest.raises(ConfigurationError, match=r"at least 2 nodes on an axis; got size=1"):
        Axis(0.0, 1.0, 1)


def test_categorical_axis_refuses_a_single_category():
    """The message says what to do."""
    with pytest.raises(ConfigurationError, match=r"got size=1\. Leave a feature out"):
        CategoricalAxis(1)


@pytest.mark.parametrize(
    "name", ["reward_noise", "arm_lengthscale", "context_lengthscale", "amplitude"]
)
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_config_refuses_scales_that_are_not_positive(name, value):
    """The message names the field and its value."""
    with pytest.raises(ConfigurationError, match=rf"positive number; got {name}={value}"):
        LogDensityConfig(2, **{name: value})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_arms": 1}, r"at least 2 arms; got num_arms=1"),
        ({"num_modes": 0}, r"at least 1; got num_modes=0"),
    ],
)
def test_config_refuses_too_few(changes, message):
    """The message names the field and its value."""
    with pytest.raises(ConfigurationError, match=message):
        LogDensityConfig(**{"num_arms": 2} | changes)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("basis", "wavelets", r"basis in \('karhunen-loeve', 'hilbert'\); got basis='wavelets'"),
    ],
)
def test_config_refuses_unknown_names(name, value, message):
    """The message names the field, its value and the alternatives."""
    config = LogDensityConfig(2)
    # Set from outside, since the run-time type check of the tests would refuse the call first.
    object.__setattr__(config, name, value)
    with pytest.raises(ConfigurationError, match=message):
        config.__post_init__()


def test_model_refuses_more_modes_than_the_grid_has():
    """Count by hand: 3 x 3 arm cells and 2 context nodes carry 18 modes."""
    settings = {"context_axes": (Axis(0.0, 1.0, 2),), "arm_axis": Axis(0.0, 1.0, 3)}
    assert LogDensityModel(LogDensityConfig(2, num_modes=18, **settings)).num_parameters == 18
    with pytest.raises(
        ConfigurationError, match=r"at most 18 modes on this grid; got num_modes=19"
    ):
        LogDensityModel(LogDensityConfig(2, num_modes=19, **settings))


def test_large_grid_is_refused_with_its_size():
    """Count by hand: 20^6 cells x 200 particles x 3 doubles of 8 bytes."""
    message = r"within 2 GB; got 20\^6 = 64,000,000 cells x 200 particles = 307,200,000,000 bytes"
    with pytest.raises(GridTooLargeError, match=message):
        LogDensityConfig(6)


@pytest.mark.parametrize(
    ("num_arms", "size", "num_particles", "limit"),
    [
        (3, 120, 200, 2.0),
        (4, 40, 200, 2.0),
        (6, 20, 200, 2.0),
        (5, 20, 50, 0.001),
        (10, 20, 20, 2.0),
    ],
)
def test_suggested_grid_is_the_largest_accepted(num_arms, size, num_particles, limit):
    """Follow the advice of the message: that size is accepted, the next larger is not."""
    settings = {"num_particles": num_particles, "memory_limit_gb": limit}
    with pytest.raises(GridTooLargeError, match=r"Lower the nodes per arm to \d+,") as refusal:
        LogDensityConfig(num_arms, arm_axis=Axis(-2.0, 2.0, size), **settings)
    suggested = int(re.search(r"nodes per arm to (\d+)", str(refusal.value))[1])
    LogDensityConfig(num_arms, arm_axis=Axis(-2.0, 2.0, suggested), **settings)
    with pytest.raises(GridTooLargeError, match=r"raise memory_limit_gb"):
        LogDensityConfig(num_arms, arm_axis=Axis(-2.0, 2.0, suggested + 1), **settings)


def test_suggestion_for_many_arms_can_be_followed():
    """Follow the advice of the message, if it names a size at all."""
    with pytest.raises(GridTooLargeError, match=r"fewer arms") as refusal:
        LogDensityConfig(30)
    advice = re.search(r"nodes per arm to (\d+)", str(refusal.value))
    if advice:
        LogDensityConfig(30, arm_axis=Axis(-2.0, 2.0, int(advice[1])))
