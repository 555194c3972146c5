"""jaxopt: minimisers, projections, proximal steps, quadratic programs, roots, implicit derivatives, losses."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jaxopt
import numpy as np
import optax
import pytest
from jaxopt import projection

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(20, 4)).astype(np.float32)
Y = (X @ np.array([1.0, -2.0, 0.5, 0.0]) + 0.1 * GENERATOR.normal(size=20)).astype(np.float32)
ZERO = jnp.zeros(4)
RIDGE = np.linalg.solve(X.T @ X / 20 + 0.01 * np.eye(4), X.T @ Y / 20)


def close(x, y, tolerance=1e-3):
    np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


def loss(w, x, y, penalty=0.01):
    return jnp.mean((x @ w - y) ** 2) + penalty * jnp.sum(w**2)


@pytest.mark.parametrize("name", ["GradientDescent", "LBFGS", "BFGS", "NonlinearCG"])
def test_minimisers(name):
    close(getattr(jaxopt, name)(fun=loss, maxiter=200, tol=1e-5).run(ZERO, X, Y).params, RIDGE)


def test_minimisers_of_scipy():
    close(jaxopt.ScipyMinimize(fun=loss, method="l-bfgs-b", tol=1e-8).run(ZERO, X, Y).params, RIDGE)
    bounded = jaxopt.ScipyBoundedMinimize(fun=loss, method="l-bfgs-b", tol=1e-8)
    found = bounded.run(ZERO, (jnp.zeros(4), jnp.ones(4)), X, Y).params
    assert bool((found >= 0).all() and (found <= 1).all()) and float(found[1]) == 0.0


def test_proximal_gradient_meets_the_conditions_of_the_lasso():
    solver = jaxopt.ProximalGradient(fun=jaxopt.objective.least_squares, prox=jaxopt.prox.prox_lasso, maxiter=500,
                                     tol=1e-6)
    w = np.asarray(solver.run(ZERO, hyperparams_prox=0.1, data=(X, Y)).params)
    slope = X.T @ (X @ w - Y) / 20
    close(slope[w != 0], -0.1 * np.sign(w[w != 0]))
    assert (np.abs(slope[w == 0]) <= 0.1 + 1e-3).all()
    coordinates = jaxopt.BlockCoordinateDescent(fun=jaxopt.objective.least_squares, block_prox=jaxopt.prox.prox_lasso,
                                                maxiter=200)
    close(coordinates.run(ZERO, hyperparams_prox=0.1, data=(X, Y)).params, w, 1e-2)


def test_projected_gradient():
    solver = jaxopt.ProjectedGradient(fun=loss, projection=projection.projection_simplex, maxiter=300)
    found = solver.run(jnp.full(4, 0.25), hyperparams_proj=1.0, x=X, y=Y).params
    close(found.sum(), 1.0)
    corners = [float(loss(jnp.asarray(c), X, Y)) for c in np.eye(4, dtype=np.float32)]
    assert bool((found >= 0).all()) and float(loss(found, X, Y)) <= min(corners) + 1e-4


def test_projections():
    x = jnp.array([1.0, -2.0, 0.5, 3.0])
    close(projection.projection_simplex(x), [0.0, 0.0, 0.0, 1.0])
    close(projection.projection_l2_ball(x, 1.0), x / np.linalg.norm(x))
    close(projection.projection_l1_ball(x, 1.0), [0.0, 0.0, 0.0, 1.0])
    close(projection.projection_box(x, (0.0, 1.0)), [1.0, 0.0, 0.5, 1.0])
    close(projection.projection_hyperplane(x, (jnp.ones(4), 1.0)), x - 1.5 / 4)
    close(projection.projection_halfspace(x, (jnp.ones(4), 1.0)), x - 1.5 / 4)
    slopes = jax.jacrev(projection.projection_simplex)(jnp.array([0.4, 0.5, -3.0]))
    close(slopes, [[0.5, -0.5, 0], [-0.5, 0.5, 0], [0, 0, 0]])


def test_implicit_derivatives():
    def weights(penalty):
        return jaxopt.LBFGS(fun=loss, maxiter=100, tol=1e-6).run(ZERO, X, Y, penalty).params

    matrix = X.T @ X / 20 + 0.1 * np.eye(4)
    w = np.linalg.solve(matrix, X.T @ Y / 20)
    close(jax.jacobian(weights)(0.1), -np.linalg.solve(matrix, w), 1e-2)
    close(jax.vmap(weights)(jnp.array([0.1, 0.1])), [w, w])


def test_quadratic_programs():
    q, c = jnp.array([[2.0, 0.5], [0.5, 1.0]]), jnp.array([1.0, 1.0])
    equal = jnp.array([[1.0, 1.0]]), jnp.array([1.0])
    positive = -jnp.eye(2), jnp.zeros(2)
    expected = [0.25, 0.75]  # where the derivatives along the line are equal
    close(jaxopt.EqualityConstrainedQP().run(params_obj=(q, c), params_eq=equal).params.primal, expected)
    close(jaxopt.OSQP().run(params_obj=(q, c), params_eq=equal, params_ineq=positive).params.primal, expected)
    box = jaxopt.BoxOSQP().run(params_obj=(q, c), params_eq=jnp.eye(2), params_ineq=(jnp.zeros(2), jnp.ones(2)))
    close(box.params.primal[0], [0.0, 0.0], 1e-2)


@pytest.mark.parametrize("name", ["GaussNewton", "LevenbergMarquardt"])
def test_least_squares(name):
    x = jnp.linspace(0, 1, 10)
    solver = getattr(jaxopt, name)(residual_fun=lambda p, x, y: y - p[0] * jnp.exp(p[1] * x))
    close(solver.run(jnp.array([1.0, -1.0]), x, 2 * jnp.exp(-1.3 * x)).params, [2.0, -1.3])


def test_roots_and_fixed_points():
    bisection = jaxopt.Bisection(optimality_fun=lambda x, t: x**3 - t, lower=0.0, upper=2.0)
    close(bisection.run(None, 2.0).params, 2 ** (1 / 3))
    close(jax.grad(lambda t: bisection.run(None, t).params)(2.0), 2 ** (-2 / 3) / 3)
    close(jaxopt.Broyden(fun=lambda x: x**3 - 2).run(jnp.array([1.5])).params, [2 ** (1 / 3)])
    for solver in (jaxopt.FixedPointIteration, jaxopt.AndersonAcceleration):
        close(solver(fixed_point_fun=lambda x, t: jnp.cos(t * x)).run(jnp.array(0.5), 1.0).params, 0.739085)


def test_stochastic_solvers():
    def batches():
        while True:
            yield X, Y

    def fun(w, data):
        return loss(w, *data)

    for solver in (jaxopt.OptaxSolver(opt=optax.adam(0.1), fun=fun, maxiter=200),
                   jaxopt.ArmijoSGD(fun=fun, maxiter=100),
                   jaxopt.PolyakSGD(fun=fun, maxiter=200, max_stepsize=0.1)):
        close(solver.run_iterator(ZERO, batches()).params, RIDGE, 5e-2)


def test_losses():
    scores, labels = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0]], np.float32), np.array([1, 0])
    logistic = jax.vmap(jaxopt.loss.multiclass_logistic_loss)(labels, scores)
    close(logistic, np.log(np.exp(scores).sum(1)) - scores[[0, 1], labels])
    close(jax.vmap(jaxopt.loss.multiclass_hinge_loss)(labels, scores), [0.0, 4.0])
    close(jax.vmap(jaxopt.loss.multiclass_perceptron_loss)(labels, scores), [0.0, 3.0])
    close(jaxopt.loss.huber_loss(jnp.array(0.0), jnp.array(3.0)), 2.5)


def test_isotonic_and_linear_solvers():
    close(jaxopt.isotonic.isotonic_l2_pav(jnp.array([0.0, 2.0, 1.0, 3.0])), [0.0, 1.5, 1.5, 3.0])
    for solve in (jaxopt.linear_solve.solve_cg, jaxopt.linear_solve.solve_gmres, jaxopt.linear_solve.solve_lu):
        close(solve(lambda x: 3 * x, jnp.ones(3)), np.full(3, 1 / 3))
