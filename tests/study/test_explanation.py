"""What an explanation says of arms that are suspended or withdrawn."""

import jax.numpy as jnp
import pytest

from cocobandits import Gaussian
from cocobandits.policies.base import Readings
from cocobandits.study.design import StudyDesign
from cocobandits.study.explanation import Rationale, _Summary, explain

ARMS = ("walk", "rest", "swim")
DESIGN = StudyDesign.declare(ARMS, {}, Gaussian(-2.0, 2.0, noise=0.5), "uniform", 0.0, 0)
# The distribution functions of three arms at three values.
VALUES = jnp.array([-1.0, 0.0, 1.0])
CUMULATIVE = jnp.array([[0.0, 0.5, 1.0], [0.25, 0.5, 1.0], [0.0, 0.25, 1.0]])
SUMMARY = _Summary(
    jnp.asarray(0.25),
    jnp.array([0.0, -0.1, 0.3]),
    jnp.array([0.3, 0.4, 0.2]),
    jnp.array([0.3, 0.2, 0.5]),
    VALUES,
    CUMULATIVE,
)
STATUSES = {"walk": "active", "rest": "suspended", "swim": "withdrawn"}


def explained(statuses=None, rationales=None):
    return explain("anna", DESIGN, Readings.of_one(SUMMARY), rationales or {}, statuses)


def test_every_arm_is_active_unless_its_status_is_given():
    assert {arm.status for arm in explained().arms.values()} == {"active"}
    assert {arm: each.status for arm, each in explained(STATUSES).arms.items()} == STATUSES


def test_beliefs_do_not_depend_on_the_status():
    for arm, belief in explained(STATUSES).arms.items():
        assert belief._replace(status="active") == explained().arms[arm]
    assert explained(STATUSES).arms["swim"].best_probability == pytest.approx(0.5)


def test_table_marks_arms_that_are_not_active():
    rows = str(explained(STATUSES)).splitlines()
    plain = str(explained()).splitlines()
    assert rows == [plain[0], plain[1], f"{plain[2]}  suspended", f"{plain[3]}  withdrawn"]


def test_table_of_rationales_names_the_information():
    rationale = Rationale(0.5, 0.25, 0.125, 0.5, 0.25, 0.25)
    head, _, row = str(explained(STATUSES, {0: rationale})).splitlines()[5:]
    assert "information (nats)" in head
    assert row.split()[:5] == ["walk", "0.5", "0.25", "0.125", "1.000"]
