"""The tutorial "Yet another JAX" (pyprobml, MIT licence): derivatives of all kinds."""

from __future__ import annotations

from tests.documents.sessions import follow
from tests.documents.test_notebook_vmap import SETUP


def test_derivatives_of_a_polynomial():
    follow([(SETUP, None), ("""
f = lambda x: x**3 + 2 * x**2 - 3 * x + 1
dfdx = jax.grad(f)
d2fdx = jax.grad(dfdx)
d3fdx = jax.grad(d2fdx)
d4fdx = jax.grad(d3fdx)
print(dfdx(1.0))
print(d2fdx(1.0))
print(d3fdx(1.0))
print(d4fdx(1.0))
""", "4.0 10.0 6.0 0.0")])


def test_partial_derivatives_and_auxiliary_results():
    follow([(SETUP, None), ("""
def f(x, y):
    return x**2 + y
# Partial derviatives
x = 2.0
y = 3.0
v, gx = value_and_grad(f, argnums=0)(x, y)
print(v)
print(gx)
gy = grad(f, argnums=1)(x, y)
print(gy)
""", "7.0 4.0 1.0"), ("""
def f(x, y):
    return x**2 + y, 42
x = 2.0
y = 3.0
(v, aux), g = value_and_grad(f, has_aux=True)(x, y)
print(v)
print(aux)
print(g)
""", "7.0 42 4.0")])


def test_gradients_and_jacobians_of_linear_functions():
    follow([(SETUP + "np.random.seed(0)", None), ("""
def fun1d(x):
    return jnp.dot(a, x)[0]
Din = 3
Dout = 1
a = np.random.normal(size=(Dout, Din))
x = np.random.normal(size=(Din,))
g = grad(fun1d)(x)
assert np.allclose(g, a)
# It is often useful to get the function value and gradient at the same time
val_grad_fn = jax.value_and_grad(fun1d)
v, g = val_grad_fn(x)
print(v)
print(g)
assert np.allclose(v, fun1d(x))
assert np.allclose(a, g)
""", None), ("""
# We construct a multi-output linear function.
# We check forward and reverse mode give same Jacobians.
def fun(x):
    return jnp.dot(A, x)
Din = 3
Dout = 4
A = np.random.normal(size=(Dout, Din))
x = np.random.normal(size=(Din,))
Jf = jacfwd(fun)(x)
Jr = jacrev(fun)(x)
assert np.allclose(Jf, Jr)
assert np.allclose(Jf, A)
print(Jf)
print(Jr)
""", None)])


def test_quadratic_form_and_its_hessian():
    follow([(SETUP + "np.random.seed(0)", None), ("""
D = 4
A = np.random.normal(size=(D, D))
x = np.random.normal(size=(D,))
quadfun = lambda x: jnp.dot(x, jnp.dot(A, x))
g = grad(quadfun)(x)
assert np.allclose(g, jnp.dot(A + A.T, x))
print(g)
""", None), ("""
H1 = hessian(quadfun)(x)
assert np.allclose(H1, A + A.T)
def my_hessian(fun):
    return jacfwd(jacrev(fun))
H2 = my_hessian(quadfun)(x)
assert np.allclose(H1, H2)
print(H1)
print(H2)
""", None)], rtol=1e-5)


def test_chain_rule_through_a_sigmoid():
    follow([(SETUP + "np.random.seed(0)", None), ("""
D = 4
w = np.random.normal(size=(D,))
x = np.random.normal(size=(D,))
y = 0
def sigmoid(x):
    return 0.5 * (jnp.tanh(x / 2.0) + 1)
def mu(w):
    return sigmoid(jnp.dot(w, x))
def deriv_mu(w):
    return mu(w) * (1 - mu(w)) * x
deriv_mu_jax = grad(mu)
print(deriv_mu(w))
print(deriv_mu_jax(w))
assert np.allclose(deriv_mu(w), deriv_mu_jax(w), atol=1e-3)
""", None)], rtol=1e-5)


LOGISTIC = """
def sigmoid(x):
    return 0.5 * (jnp.tanh(x / 2.0) + 1)

def predict_single(w, x):
    return sigmoid(jnp.dot(w, x))  # <(D) , (D)> = (1) # inner product

def predict_batch(w, X):
    return sigmoid(jnp.dot(X, w))  # (N,D) * (D,1) = (N,1) # matrix-vector multiply

# negative log likelihood
def loss(weights, inputs, targets):
    preds = predict_batch(weights, inputs)
    logprobs = jnp.log(preds) * targets + jnp.log(1 - preds) * (1 - targets)
    return -jnp.sum(logprobs)

D = 2
N = 3
w = jax.random.normal(key, shape=(D,))
X = jax.random.normal(key, shape=(N, D))
y = jax.random.choice(key, 2, shape=(N,))  # uniform binary labels

print(loss(w, X, y))
# Gradient function
grad_fun = grad(loss)
# Gradient of each example in the batch - 2 different ways
grad_fun_w = partial(grad_fun, w)
grads = vmap(grad_fun_w)(X, y)
print(grads)
assert grads.shape == (N, D)
grads2 = vmap(grad_fun, in_axes=(None, 0, 0))(w, X, y)
assert np.allclose(grads, grads2)
# Gradient for entire batch
grad_sum = jnp.sum(grads, axis=0)
assert grad_sum.shape == (D,)
print(grad_sum)
"""


def test_logistic_regression(old_random_bits):
    """The key is the document's last one, of its example with distrax."""
    follow([(SETUP + "key = jax.random.PRNGKey(1234)", None), (LOGISTIC, """
2.384371 [[ 0.596 -0.621] [ 0.315 0.837] [-0.233 -0.448]] [ 0.677 -0.232]"""), ("""
# Textbook implementation of gradient
def NLL_grad(weights, batch):
    X, y = batch
    N = X.shape[0]
    mu = predict_batch(weights, X)
    g = jnp.sum(jnp.dot(jnp.diag(mu - y), X), axis=0)
    return g

grad_sum_batch = NLL_grad(w, (X, y))
print(grad_sum_batch)
assert np.allclose(grad_sum, grad_sum_batch)
""", "[ 0.677 -0.232]"), ("""
# We can also compute Hessians, as we illustrate below.
hessian_fun = hessian(loss)
# Hessian on one example
H0 = hessian_fun(w, X[0, :], y[0])
print("Hessian(example 0)\\n{}".format(H0))
# Hessian for batch
Hbatch = vmap(hessian_fun, in_axes=(None, 0, 0))(w, X, y)
print("Hbatch shape {}".format(Hbatch.shape))
Hbatch_sum = jnp.sum(Hbatch, axis=0)
print("Hbatch sum\\n {}".format(Hbatch_sum))
""", """Hessian(example 0) [[ 0.185 -0.193] [-0.193 0.201]] Hbatch shape (3, 2, 2)
Hbatch sum [[0.357 0.225] [0.225 1.239]]"""), ("""
# Textbook implementation of Hessian
def NLL_hessian(weights, batch):
    X, y = batch
    mu = predict_batch(weights, X)
    S = jnp.diag(mu * (1 - mu))
    H = jnp.dot(jnp.dot(X.T, S), X)
    return H
H2 = NLL_hessian(w, (X, y))
assert np.allclose(Hbatch_sum, H2, atol=1e-2)
print(H2)
""", None)], rtol=1e-5)


def test_products_of_vectors_and_jacobians(old_random_bits):
    follow([(SETUP + "key = jax.random.PRNGKey(1234)", None), ("""
n = 3
m = 2
W = jax.random.normal(key, shape=(m, n))
x = jax.random.normal(key, shape=(n,))
u = jax.random.normal(key, shape=(m,))
def f1(x):
    return jnp.dot(W, x)
J1 = jacfwd(f1)(x)
print(J1.shape)
assert np.allclose(J1, W)
tmp1 = jnp.dot(u.T, J1)
print(tmp1)
(val, jvp_fun) = jax.vjp(f1, x)
tmp2 = jvp_fun(u)
assert np.allclose(tmp1, tmp2)
tmp3 = np.dot(W.T, u)
assert np.allclose(tmp1, tmp3)
""", "(2, 3) [ 0.888 -0.538 -0.539]"), ("""
def f2(W):
    return jnp.dot(W, x)
J2 = jacfwd(f2)(W)
print(J2.shape)
tmp1 = jnp.dot(u.T, J2)
print(tmp1)
print(tmp1.shape)
(val, jvp_fun) = jax.vjp(f2, W)
tmp2 = jvp_fun(u)
assert np.allclose(tmp1, tmp2)
tmp3 = np.outer(u, x)
assert np.allclose(tmp1, tmp3)
""", "(2, 2, 3) [[-0.009 -0.032 -0.474] [ 0.005 0.019 0.286]] (2, 3)")])


def test_stop_gradient():
    follow([(SETUP, None), ("""
def td_loss(theta, s_prev, r_t, s_t):
    v_prev = value_fn(theta, s_prev)
    target = r_t + value_fn(theta, s_t)
    return 0.5 * (jax.lax.stop_gradient(target) - v_prev) ** 2

td_update = jax.grad(td_loss)
# An example transition.
s_prev = jnp.array([1.0, 2.0, -1.0])
r_t = jnp.array(1.0)
s_t = jnp.array([2.0, 1.0, 0.0])
# Value function and initial parameters
value_fn = lambda theta, state: jnp.dot(theta, state)
theta = jnp.array([0.1, -0.1, 0.0])
print(td_update(theta, s_prev, r_t, s_t))
""", "[-1.2 -2.4 1.2]")])


def test_straight_through_estimator():
    follow([(SETUP, None), ("""
def onehot(labels, num_classes):
    y = labels[..., None] == jnp.arange(num_classes)[None]
    return y.astype(jnp.float32)

def quantize(y_soft):
    y_hard = onehot(jnp.argmax(y_soft), 3)[0]
    return y_hard

y_soft = np.array([0.1, 0.2, 0.7])
print(quantize(y_soft))
""", "[0. 0. 1.]"), ("""
def f(y):
    w = jnp.array([1, 2, 3])
    yq = quantize(y)
    return jnp.dot(w, yq)

print(f(y_soft))
print(grad(f)(y_soft))
""", "3.0 [0. 0. 0.]"), ("""
def f_ste(y):
    w = jnp.array([1, 2, 3])
    yq = quantize(y)
    yy = y + jax.lax.stop_gradient(yq - y)  # gives yq on fwd, and y on backward
    return jnp.dot(w, yy)

print(f_ste(y_soft))
print(grad(f_ste)(y_soft))
""", "3.0 [1. 2. 3.]")])


def test_gradients_per_example():
    follow([(SETUP, None), ("""
def loss(w, x):
    return jnp.dot(w, x)

w = jnp.ones((3,))
x0 = jnp.array([1.0, 2.0, 3.0])
x1 = 2 * x0
X = jnp.stack([x0, x1])
print(X.shape)
perex_grads = jax.jit(jax.vmap(jax.grad(loss), in_axes=(None, 0)))
print(perex_grads(w, X))
""", "(2, 3) [[1. 2. 3.] [2. 4. 6.]]"), ("""
gradfn = jax.grad(loss)
W = jnp.stack([w, w])
print(jax.vmap(gradfn)(W, X))
print(jax.vmap(gradfn, in_axes=(None, 0))(w, X))
""", "[[1. 2. 3.] [2. 4. 6.]] [[1. 2. 3.] [2. 4. 6.]]")])


ADAM = """
def l2_loss(predictions, targets):
    return 0.5 * (predictions - targets) ** 2

def adam_init(params):
    zeros = jax.tree_util.tree_map(jnp.zeros_like, params)
    return dict(count=jnp.zeros([], jnp.int32), mu=zeros, nu=zeros)

def adam_update(grads, state, learning_rate, b1=0.9, b2=0.999, eps=1e-8):
    mu = jax.tree_util.tree_map(lambda m, g: b1 * m + (1 - b1) * g, state["mu"], grads)
    nu = jax.tree_util.tree_map(lambda n, g: b2 * n + (1 - b2) * g * g, state["nu"], grads)
    count = state["count"] + 1
    updates = jax.tree_util.tree_map(
        lambda m, n: -learning_rate * (m / (1 - b1**count)) / (jnp.sqrt(n / (1 - b2**count)) + eps), mu, nu)
    return updates, dict(count=count, mu=mu, nu=nu)
"""


def test_optimisation_of_a_linear_model():
    """The example with Optax's Adam; the optimiser is written out, since the library is not needed for the rest."""
    follow([(SETUP + ADAM, None), ("""
num_weights = 2
params = {"w": jnp.ones((num_weights,))}
num_ex = 3
xs = 2 * jnp.ones((num_ex, num_weights))
ys = jnp.ones(num_ex)
compute_loss_single = lambda params, x, y: l2_loss(params["w"].dot(x), y)
compute_loss = lambda params, xs, ys: jnp.sum(
    jax.vmap(compute_loss_single, in_axes=[None, 0, 0])(params, xs, ys))
print("original params ", params)
print("loss ", compute_loss(params, xs, ys))
""", "original params {'w': DeviceArray([1., 1.], dtype=float32)} loss 13.5"), ("""
# create a stateful optimizer
learning_rate = 0.1
opt_state = adam_init(params)
print("original state ", opt_state)
# compute gradients
grads = jax.grad(compute_loss)(params, xs, ys)
print("grads ", grads)
""", """original state {'count': DeviceArray(0, dtype=int32), 'mu': {'w': DeviceArray([0., 0.], dtype=float32)},
'nu': {'w': DeviceArray([0., 0.], dtype=float32)}} grads {'w': DeviceArray([18., 18.], dtype=float32)}"""), ("""
# updage params (and optstate) given gradients
updates, opt_state = adam_update(grads, opt_state, learning_rate)
params = jax.tree_util.tree_map(lambda p, u: p + u, params, updates)
print("updated params ", params)
print("updated state ", opt_state)
""", """updated params {'w': DeviceArray([0.9, 0.9], dtype=float32)} updated state
{'count': DeviceArray(1, dtype=int32),
'mu': {'w': DeviceArray([1.8, 1.8], dtype=float32)}, 'nu': {'w': DeviceArray([0.324, 0.324], dtype=float32)}}""")])


