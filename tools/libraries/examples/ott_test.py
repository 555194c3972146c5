"""OTT: Sinkhorn in its forms, its gradients, costs, low rank, Gromov, barycenters, soft sorting, divergences."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ott.geometry import costs, geometry, grid, pointcloud
from ott.problems.linear import linear_problem
from ott.problems.quadratic import quadratic_problem
from ott.solvers.linear import acceleration, sinkhorn, sinkhorn_lr, univariate
from ott.solvers.quadratic import gromov_wasserstein
from ott.tools import k_means, soft_sort
from ott.tools.gaussian_mixture import gaussian
from scipy.optimize import linear_sum_assignment

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(12, 2)).astype(np.float32)
Y = GENERATOR.normal(size=(12, 2)).astype(np.float32) + 1
SQUARED = ((X[:, None] - Y[None]) ** 2).sum(-1)


def close(x, y, tolerance=1e-3):
    np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


def plan_of_numpy(cost: np.ndarray, epsilon: float) -> np.ndarray:
    """The plan between uniform marginals."""
    n, m = cost.shape
    kernel, v = np.exp(-cost.astype(np.float64) / epsilon), np.ones(m)
    for _ in range(5000):
        u = 1 / n / (kernel @ v)
        v = 1 / m / (kernel.T @ u)
    return u[:, None] * kernel * v


def problem(epsilon: float = 0.5) -> linear_problem.LinearProblem:
    return linear_problem.LinearProblem(pointcloud.PointCloud(X, Y, epsilon=epsilon))


def test_sinkhorn():
    out = jax.jit(sinkhorn.Sinkhorn(threshold=1e-4))(problem())
    plan = plan_of_numpy(SQUARED, 0.5)
    assert bool(out.converged)
    close(out.matrix, plan)
    close(out.reg_ot_cost, (plan * SQUARED).sum() + 0.5 * (plan * np.log(plan * 144)).sum(), 1e-2)
    close(out.matrix.sum(1), np.full(12, 1 / 12))


def test_a_small_epsilon_comes_near_the_assignment():
    out = sinkhorn.Sinkhorn(max_iterations=5000)(problem(0.01))
    rows, columns = linear_sum_assignment(SQUARED)
    close(out.primal_cost, SQUARED[rows, columns].mean(), 3e-2)


@pytest.mark.parametrize("options", [{"lse_mode": False}, {"momentum": acceleration.Momentum(start=5)},
                                     {"anderson": acceleration.AndersonAcceleration(memory=3)}])
def test_forms_of_sinkhorn(options):
    close(sinkhorn.Sinkhorn(threshold=1e-4, **options)(problem()).reg_ot_cost,
          sinkhorn.Sinkhorn(threshold=1e-4)(problem()).reg_ot_cost, 1e-2)


def test_gradients():
    def cost(x):
        return sinkhorn.Sinkhorn(threshold=1e-4)(linear_problem.LinearProblem(
            pointcloud.PointCloud(x, Y, epsilon=0.5))).reg_ot_cost

    plan = plan_of_numpy(SQUARED, 0.5)
    expected = 2 * (plan.sum(1)[:, None] * X - plan @ Y)  # the envelope theorem
    close(jax.grad(cost)(jnp.asarray(X)), expected, 1e-2)
    close(jax.jit(jax.vmap(jax.grad(cost)))(jnp.stack([X, X]))[1], expected, 1e-2)


def test_unbalanced():
    out = sinkhorn.Sinkhorn()(linear_problem.LinearProblem(pointcloud.PointCloud(X, Y, epsilon=0.5), tau_a=0.9,
                                                           tau_b=0.8))
    assert bool(out.converged) and float(abs(out.matrix.sum() - 1)) > 1e-3


def test_costs():
    def matrix(cost):
        return pointcloud.PointCloud(X, Y, cost_fn=cost).cost_matrix

    close(matrix(costs.SqEuclidean()), SQUARED)
    close(matrix(costs.Euclidean()), np.sqrt(SQUARED))
    close(matrix(costs.PNormP(1.5)), (np.abs(X[:, None] - Y[None]) ** 1.5).sum(-1) / 1.5)
    cosine = X @ Y.T / np.linalg.norm(X, axis=1)[:, None] / np.linalg.norm(Y, axis=1)
    close(matrix(costs.Cosine()), 1 - cosine)


def test_geometries():
    out = sinkhorn.Sinkhorn(threshold=1e-4)(linear_problem.LinearProblem(geometry.Geometry(jnp.asarray(SQUARED),
                                                                                           epsilon=0.5)))
    close(out.matrix, plan_of_numpy(SQUARED, 0.5))
    b = jnp.arange(1.0, 17) / 136
    on_grid = linear_problem.LinearProblem(grid.Grid(grid_size=(4, 4), epsilon=0.1), a=jnp.ones(16) / 16, b=b)
    out = sinkhorn.Sinkhorn(threshold=1e-4)(on_grid)
    close(out.transport_mass, 1.0)


def test_low_rank():
    out = sinkhorn_lr.LRSinkhorn(rank=6)(problem(0.0))
    rows, columns = linear_sum_assignment(SQUARED)
    close(out.matrix.sum(1), np.full(12, 1 / 12), 1e-2)
    assert float(out.primal_cost) >= SQUARED[rows, columns].mean() - 1e-3


def test_gromov():
    turned = X @ np.array([[0.0, -1.0], [1.0, 0.0]], np.float32)
    pair = quadratic_problem.QuadraticProblem(pointcloud.PointCloud(X), pointcloud.PointCloud(turned))
    solver = gromov_wasserstein.GromovWasserstein(epsilon=0.05, linear_solver=sinkhorn.Sinkhorn())
    out = solver(pair)
    assert bool(jnp.isfinite(out.reg_gw_cost))
    close(out.matrix.sum(), 1.0, 1e-2)


def test_soft_sorting():
    x = jnp.array([3.0, 1.0, 2.0, 5.0])
    close(soft_sort.sort(x, epsilon=1e-3), np.sort(x), 2e-2)
    close(soft_sort.ranks(x, epsilon=1e-3), [2, 0, 1, 3], 2e-2)
    close(soft_sort.sort(x, topk=2, epsilon=1e-3), [3.0, 5.0], 2e-2)


def test_one_dimension():
    x, y = jnp.asarray(X[:, :1]), jnp.asarray(Y[:, :1])
    out = univariate.uniform_solver(linear_problem.LinearProblem(pointcloud.PointCloud(x, y)))
    close(out.ot_costs, [((np.sort(X[:, 0]) - np.sort(Y[:, 0])) ** 2).mean()])


def test_gaussians():
    first = gaussian.Gaussian.from_mean_and_cov(jnp.zeros(2), jnp.eye(2))
    second = gaussian.Gaussian.from_mean_and_cov(jnp.array([3.0, 4.0]), 4 * jnp.eye(2))
    close(first.w2_dist(second), 25 + 2)
    close(first.transport(second, jnp.asarray(X)), 2 * X + np.array([3.0, 4.0]))


def test_clusters():
    groups = np.concatenate([X * 0.01, X * 0.01 + 10, X * 0.01 + np.array([10.0, -10.0])]).astype(np.float32)
    out = k_means.k_means(jnp.asarray(groups), 3, rng=jax.random.key(0), n_init=5)
    assert len({tuple(out.assignment[12 * k : 12 * k + 12].tolist()) for k in range(3)}) == 3
