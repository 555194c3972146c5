"""gymnax: environments stepped alone, in batches, in compiled rollouts; dynamics beside their equations."""

from __future__ import annotations

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

KEY = jax.random.key(0)
NAMES = ["CartPole-v1", "Pendulum-v1", "Acrobot-v1", "MountainCar-v0", "Catch-bsuite", "FourRooms-misc", "Reacher-misc",
         "Breakout-MinAtar"]


@pytest.mark.parametrize("name", NAMES)
def test_environments(name):
    env, params = gymnax.make(name)

    @jax.jit
    def rollout(key):
        observation, state = env.reset(key, params)

        def step(state, key):
            action = env.action_space(params).sample(key)
            observation, state, reward, terminated, truncated, _ = env.step(key, state, action, params)
            return state, (observation, reward, terminated | truncated)

        return observation, jax.lax.scan(step, state, jax.random.split(key, 20))[1]

    first, (observations, rewards, dones) = rollout(KEY)
    assert observations.shape == (20, *first.shape) and rewards.shape == dones.shape == (20,)
    assert bool(jnp.isfinite(observations).all()) and bool(jnp.isfinite(rewards).all())
    assert bool(env.observation_space(params).contains(observations[0]))
    batch = jax.vmap(rollout)(jnp.stack([KEY, KEY]))
    np.testing.assert_allclose(batch[1][0][1], observations, rtol=1e-4, atol=1e-4)


def test_the_pole_follows_its_equations():
    env, params = gymnax.make("CartPole-v1")
    _, state = env.reset(KEY, params)
    x, v, angle, turn = (float(s) for s in (state.x, state.x_dot, state.theta, state.theta_dot))
    for key in jax.random.split(KEY, 5):
        _, state, reward, _, _ = env.step_env(key, state, 1, params)
        assert float(reward) == 1.0
        push = (10 + 0.05 * turn**2 * np.sin(angle)) / 1.1
        bend = (9.8 * np.sin(angle) - np.cos(angle) * push) / (0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1))
        move = push - 0.05 * bend * np.cos(angle) / 1.1
        x, v, angle, turn = x + 0.02 * v, v + 0.02 * move, angle + 0.02 * turn, turn + 0.02 * bend
        np.testing.assert_allclose((state.x, state.x_dot, state.theta, state.theta_dot), (x, v, angle, turn), rtol=1e-4)


def test_an_episode_ends_and_begins_again():
    env, params = gymnax.make("CartPole-v1")
    _, state = env.reset(KEY, params)
    ended = []
    for key in jax.random.split(KEY, 30):
        _, state, _, terminated, _, _ = env.step(key, state, 1, params)
        ended.append(bool(terminated))
        assert not ended[-1] or int(state.time) == 0
    assert any(ended)
