"""A study without a given noise of rewards: it learns, reports and keeps it."""

import jax.numpy as jnp
import numpy as np
import pytest

from cocobandits import Gaussian, LogDensity, Study
from cocobandits.errors import ConfigurationError, InputError
from cocobandits.populations.known.gaussian_mixture import ConditionalMixture
from support.designs import small

TRUE_NOISE = 0.1
REWARDS = Gaussian(-2.0, 2.0)
# In double precision: runs of two scales are compared, and rounding would part them.
GRID = LogDensity(nodes_per_arm=8, num_modes=15, precision="double")
PRIOR = ConditionalMixture.from_arrays([[0.0]], [[[0.5], [0.1]]], [[[[0.2]], [[0.1]]]])


def make_study(policy="coids", rewards=REWARDS) -> Study:
    settings = small(policy, PRIOR, population=GRID, num_particles=60)
    return Study(["a", "b"], {}, rewards, settings, seed=1)


def serve(study, num_users, per_user, scale=1.0):
    """Draw users of two kinds, and rewards with the true noise."""
    generator = np.random.default_rng(5)
    for user in range(num_users):
        study.enrol(str(user))
        means = generator.normal(0.0, 0.3, 2) + ([0.8, -0.5] if user % 2 else [-0.6, 0.4])
        for _ in range(per_user):
            decision = study.decide(str(user))
            mean = means[study.design.arms.index(decision.arm)]
            study.reward(decision.id, scale * (mean + TRUE_NOISE * generator.normal()))
    return study


@pytest.fixture(scope="module")
def learned() -> Study:
    return serve(make_study(), num_users=40, per_user=5)


def test_noise_is_learned(learned):
    """The prior has its median at 0.2 and covers a factor of four; 200 rewards tell."""
    before = make_study().hyperparameters()["noise"]
    assert before[2] / before[0] > 4
    low, middle, high = learned.hyperparameters()["noise"]
    print(f"\nnoise {before} before, {(low, middle, high)} after 200 rewards; truth {TRUE_NOISE}")
    assert low < middle < high
    assert abs(middle / TRUE_NOISE - 1) < 0.2
    assert high / low < 2


def test_noise_is_in_units_of_reward(learned):
    """Rewards 1024 times as large, which loses no bit: the same decisions, noise as much larger."""
    scaled = make_study(rewards=Gaussian(-2048.0, 2048.0))
    serve(scaled, num_users=4, per_user=3, scale=1024.0)
    plain = serve(make_study(), num_users=4, per_user=3)
    for name, factor in (("noise", 1024), ("arm lengthscale", 1024), ("amplitude", 1)):
        expected = factor * np.array(plain.hyperparameters()[name])
        np.testing.assert_allclose(scaled.hyperparameters()[name], expected, rtol=1e-6)
    assert set(learned.hyperparameters()) == {"arm lengthscale", "amplitude", "noise"}


def test_explanation_reports_the_learned_noise(learned):
    """The variance of a reward around its mean, averaged over particles."""
    low, _, high = learned.hyperparameters()["noise"]
    for explained in learned.explain("7").arms.values():
        assert 0.8 * low**2 < explained.uncertainty.noise < 1.2 * high**2
        assert np.all(np.isfinite([explained.mean, *explained.interval, *explained.uncertainty]))


def shares_at_the_ends_of_intervals(study, user):
    """Average the particles' own distribution functions at both ends, arm by arm."""
    context, statistics = study._learner.users.of(study.users.index(user))
    explained = study.explain(user)
    ends = np.array([explained.arms[arm].interval for arm in study.design.arms])

    def read(belief):
        return belief.cumulative(jnp.asarray(ends.ravel()))

    users = study._learner.users
    log_weights, cumulative = study._learner.policy.read(
        study._learner.state, users, (context, statistics), read
    )
    average = np.tensordot(np.exp(log_weights), np.asarray(cumulative), axes=1)
    return np.array([average[0, :2], average[1, 2:]])


def test_interval_covers_nine_tenths_of_the_belief(learned):
    found = shares_at_the_ends_of_intervals(learned, "7")
    np.testing.assert_allclose(found, [[0.05, 0.95]] * 2, atol=0.02)


def test_interval_covers_nine_tenths_while_the_noise_is_not_known_yet():
    """After two rewards, particles hold very different noises."""
    study = serve(make_study("npm-ts"), num_users=1, per_user=2)
    found = shares_at_the_ends_of_intervals(study, "0")
    print(f"\nshares below the ends of the 90 % intervals: {found.tolist()}")
    np.testing.assert_allclose(found, [[0.05, 0.95]] * 2, atol=0.002)


def test_learned_noise_is_diagnosed_and_stored(learned, tmp_path):
    found = learned.diagnose()
    assert (found.in_use, found.num_rewards) == ("nonparametric", 200)
    assert all(np.isfinite(value) for value in found.log_evidences.values())
    learned.save(tmp_path / "one.study")
    loaded = Study.load(tmp_path / "one.study")
    assert loaded.design == learned.design
    assert loaded.design.rewards.noise is None
    assert loaded.hyperparameters() == learned.hyperparameters()
    assert loaded.explain("3") == learned.explain("3")
    assert loaded.diagnose() == found


@pytest.mark.parametrize("policy", ["npm-ts", "gids"])
def test_policies_with_particles_learn_it(policy):
    study = serve(make_study(policy), num_users=3, per_user=2)
    assert set(study.hyperparameters()) == {"arm lengthscale", "amplitude", "noise"}


@pytest.mark.parametrize("policy", ["mtts", "ind-ts", "oracle-ts", "oracle-plan"])
def test_policies_that_must_be_told_say_so(policy):
    message = r"known noise.*got noise=None. Give the rewards a noise, or choose .*coids"
    with pytest.raises(ConfigurationError, match=message):
        make_study(policy)


def test_uniform_needs_no_noise():
    study = serve(make_study("uniform"), num_users=2, per_user=2)
    assert study.hyperparameters() == {}


def test_limits_of_rewards_do_not_need_the_noise():
    """Half the width of the range on either side."""
    study = make_study()
    assert study.design.rewards.bounds == (-4.0, 4.0)
    study.enrol("anna")
    with pytest.raises(InputError, match="from -4 to 4"):
        study.reward(study.decide("anna").id, 4.1)


def test_known_noise_is_not_learned():
    study = serve(
        make_study(rewards=Gaussian(-2.0, 2.0, noise=TRUE_NOISE)), num_users=2, per_user=2
    )
    assert "noise" not in study.hyperparameters()
    for explained in study.explain("0").arms.values():
        assert explained.uncertainty.noise == pytest.approx(TRUE_NOISE**2, rel=1e-12)


def test_noise_has_a_floor():
    """Rewards that repeat exactly ask for no noise at all."""
    study = make_study()
    for user in range(8):
        study.enrol(str(user))
        for _ in range(5):
            decision = study.decide(str(user))
            study.reward(decision.id, 1.5 if decision.arm == "a" else -1.0)
    low, median, _ = study.hyperparameters()["noise"]
    print(f"\nnoise after 40 rewards that repeat: {median:.2g}, at least {low:.2g}")
    assert 4e-4 <= low <= median < 0.05
    assert sum(study.decide("0").probabilities.values()) == pytest.approx(1.0, abs=1e-9)
