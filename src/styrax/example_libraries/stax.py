"""Layers of neural networks as pairs of functions, and their combinators.

A layer is `(init_fun, apply_fun)`: `init_fun(rng, input_shape) -> (output_shape, params)`, where sizes of -1 are
unknown, and `apply_fun(params, inputs, **kwargs) -> outputs`; a layer that draws random numbers takes `rng` there.

Example:
  >>> import styrax as jax
  >>> from styrax.example_libraries import stax
  >>> init, apply = stax.serial(stax.Dense(8), stax.Relu, stax.Dense(2))
  >>> shape, params = init(jax.random.key(0), (-1, 4))
  >>> shape, apply(params, jax.numpy.ones((3, 4))).shape
  ((-1, 2), (3, 2))
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from .. import lax, random
from .. import numpy as jnp
from ..core.arrays.array import Array
from ..core.types.typing import ArrayLike, Function, PyTree
from ..nn import elu, gelu, leaky_relu, log_softmax, relu, selu, sigmoid, softmax, softplus, standardize
from ..nn.initializers import Initializer, glorot_normal, normal, ones, zeros

glorot = glorot_normal
randn = normal
logsoftmax = log_softmax

Layer: TypeAlias = tuple[Callable[..., tuple[Any, PyTree]], Callable[..., Any]]


def Dense(out_dim: int, W_init: Initializer = glorot_normal(), b_init: Initializer = normal()) -> Layer:
    """`inputs @ W + b`, along the last axis."""

    def init_fun(rng: Array, input_shape: Sequence[int]) -> tuple[tuple, PyTree]:
        of_weights, of_bias = random.split(rng)
        params = W_init(of_weights, (input_shape[-1], out_dim)), b_init(of_bias, (out_dim,))
        return (*input_shape[:-1], out_dim), params

    def apply_fun(params: PyTree, inputs: Array, **kwargs: Any) -> Array:
        weights, bias = params
        return jnp.dot(inputs, weights) + bias

    return init_fun, apply_fun


def _filters(dimension_numbers: tuple[str, str, str], out_chan: int, filter_shape: Sequence[int],
             input_shape: Sequence[int]) -> tuple[tuple, tuple]:
    """The shapes of a convolution's filters and of its bias."""
    inputs, filters, outputs = dimension_numbers
    window = iter(filter_shape)
    sizes = {"O": out_chan, "I": input_shape[inputs.index("C")]}
    return (tuple(sizes[c] if c in sizes else next(window) for c in filters),
            tuple(out_chan if c == "C" else 1 for c in outputs))


def _convolution(convolve: Callable[..., Array], output_shape: Callable[[tuple, tuple], tuple],
                 dimension_numbers: tuple[str, str, str], out_chan: int, filter_shape: Sequence[int],
                 W_init: Initializer | None, b_init: Initializer) -> Layer:
    filters = dimension_numbers[1]
    init_weights = W_init or glorot_normal(filters.index("I"), filters.index("O"))

    def init_fun(rng: Array, input_shape: Sequence[int]) -> tuple[tuple, PyTree]:
        kernel, bias = _filters(dimension_numbers, out_chan, filter_shape, input_shape)
        of_weights, of_bias = random.split(rng)
        return output_shape(tuple(input_shape), kernel), (init_weights(of_weights, kernel), b_init(of_bias, bias))

    def apply_fun(params: PyTree, inputs: Array, **kwargs: Any) -> Array:
        weights, bias = params
        return convolve(inputs, weights) + bias

    return init_fun, apply_fun


def GeneralConv(dimension_numbers: tuple[str, str, str], out_chan: int, filter_shape: Sequence[int],
                strides: Sequence[int] | None = None, padding: str = "VALID", W_init: Initializer | None = None,
                b_init: Initializer = normal(1e-6)) -> Layer:
    """A convolution with a bias; `dimension_numbers` are the layouts of inputs, filters and outputs."""
    strides = strides or (1,) * len(filter_shape)

    def convolve(x: Any, w: Any) -> Array:
        return lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=dimension_numbers)

    def shape(inputs: tuple, kernel: tuple) -> tuple:
        return lax.conv_general_shape_tuple(inputs, kernel, strides, padding, dimension_numbers)

    return _convolution(convolve, shape, dimension_numbers, out_chan, filter_shape, W_init, b_init)


def GeneralConvTranspose(dimension_numbers: tuple[str, str, str], out_chan: int, filter_shape: Sequence[int],
                         strides: Sequence[int] | None = None, padding: str = "VALID",
                         W_init: Initializer | None = None, b_init: Initializer = normal(1e-6)) -> Layer:
    """A transposed convolution with a bias; `dimension_numbers` are the layouts of inputs, filters and outputs."""
    strides = strides or (1,) * len(filter_shape)

    def convolve(x: Any, w: Any) -> Array:
        return lax.conv_transpose(x, w, strides, padding, dimension_numbers=dimension_numbers)

    def shape(inputs: tuple, kernel: tuple) -> tuple:
        return lax.conv_transpose_shape_tuple(inputs, kernel, strides, padding, dimension_numbers)

    return _convolution(convolve, shape, dimension_numbers, out_chan, filter_shape, W_init, b_init)


def Conv(out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None,
         padding: str = "VALID", W_init: Initializer | None = None, b_init: Initializer = normal(1e-6)
         ) -> Layer:
    """A convolution of images, channels last."""
    return GeneralConv(("NHWC", "HWIO", "NHWC"), out_chan, filter_shape, strides, padding, W_init, b_init)


def ConvTranspose(out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None,
                  padding: str = "VALID", W_init: Initializer | None = None, b_init: Initializer = normal(1e-6)
                  ) -> Layer:
    """A transposed convolution of images, channels last."""
    return GeneralConvTranspose(("NHWC", "HWIO", "NHWC"), out_chan, filter_shape, strides, padding, W_init, b_init)


def Conv1DTranspose(out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None,
                    padding: str = "VALID", W_init: Initializer | None = None, b_init: Initializer = normal(1e-6)
                    ) -> Layer:
    """A transposed convolution of sequences, channels last."""
    return GeneralConvTranspose(("NHC", "HIO", "NHC"), out_chan, filter_shape, strides, padding, W_init, b_init)


def BatchNorm(axis: int | Sequence[int] = (0, 1, 2), epsilon: float = 1e-5, center: bool = True, scale: bool = True,
              beta_init: Initializer = zeros, gamma_init: Initializer = ones) -> Layer:
    """Normalisation along `axis` by the mean and variance of the batch at hand, then a scale and a shift."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng: Array, input_shape: Sequence[int]) -> tuple[tuple, PyTree]:
        shape = tuple(d for i, d in enumerate(input_shape) if i not in axes)
        of_shift, of_scale = random.split(rng)
        return tuple(input_shape), (beta_init(of_shift, shape) if center else (),
                                    gamma_init(of_scale, shape) if scale else ())

    def apply_fun(params: PyTree, x: Array, **kwargs: Any) -> Array:
        beta, gamma = params
        out = standardize(x, axes, epsilon=epsilon)
        spread = tuple(None if i in axes else slice(None) for i in range(jnp.ndim(x)))
        if scale:
            out = gamma[spread] * out
        return out + beta[spread] if center else out

    return init_fun, apply_fun


def elementwise(fun: Function, **fun_kwargs: Any) -> Layer:
    """A function of each element, without parameters."""

    def init_fun(rng: Array, input_shape: Sequence[int]) -> tuple[Any, PyTree]:
        return input_shape, ()

    def apply_fun(params: PyTree, inputs: Array, **kwargs: Any) -> Array:
        return fun(inputs, **fun_kwargs)

    return init_fun, apply_fun


Tanh = elementwise(jnp.tanh)
Relu = elementwise(relu)
Exp = elementwise(jnp.exp)
LogSoftmax = elementwise(log_softmax, axis=-1)
Softmax = elementwise(softmax, axis=-1)
Softplus = elementwise(softplus)
Sigmoid = elementwise(sigmoid)
Elu = elementwise(elu)
LeakyRelu = elementwise(leaky_relu)
Selu = elementwise(selu)
Gelu = elementwise(gelu)


def _pooling(reduce: Callable[..., Array], init_value: float, rescale: Callable[..., Callable] | None,
             window_shape: Sequence[int], strides: Sequence[int] | None, padding: str, spec: str | None) -> Layer:
    """A reduction over windows. `spec` says where the axes "N" and "C", which are not reduced, are."""
    layout = spec or "N" + "?" * len(window_shape) + "C"
    steps_of, sizes_of = iter(strides or (1,) * len(window_shape)), iter(window_shape)
    window, steps = [], []
    for c in layout:
        window.append(1 if c in "NC" else next(sizes_of))
        steps.append(1 if c in "NC" else next(steps_of))
    weigh = rescale(tuple(window), tuple(steps), padding) if rescale else None

    def pool(inputs: Any) -> Array:
        return lax.reduce_window(inputs, init_value, reduce, window, steps, padding)

    def init_fun(rng: Array, input_shape: Sequence[int]) -> tuple[tuple, PyTree]:
        pads = lax.padtype_to_pads(input_shape, window, steps, padding)
        return lax.reduce_window_shape_tuple(tuple(input_shape), window, steps, pads), ()

    def apply_fun(params: PyTree, inputs: Array, **kwargs: Any) -> Array:
        out = pool(inputs)
        return weigh(out, inputs, layout) if weigh else out

    return init_fun, apply_fun


def MaxPool(window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: str = "VALID",
            spec: str | None = None) -> Layer:
    """The largest element of each window."""
    return _pooling(lax.max, -jnp.inf, None, window_shape, strides, padding, spec)


def SumPool(window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: str = "VALID",
            spec: str | None = None) -> Layer:
    """The sum of each window."""
    return _pooling(lax.add, 0.0, None, window_shape, strides, padding, spec)


def _mean_of_windows(window: tuple, steps: tuple, padding: str) -> Callable[[Array, Array, str], Array]:
    """How sums over windows become means of the elements inside the array."""

    def weigh(sums: Array, inputs: Array, layout: str) -> Array:
        inner = [i for i, c in enumerate(layout) if c not in "NC"]
        counts = lax.reduce_window(jnp.ones([inputs.shape[i] for i in inner], inputs.dtype), 0.0, lax.add,
                                   [window[i] for i in inner], [steps[i] for i in inner], padding)
        return sums / jnp.expand_dims(counts, tuple(i for i, c in enumerate(layout) if c in "NC"))

    return weigh


def AvgPool(window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: str = "VALID",
            spec: str | None = None) -> Layer:
    """The mean of each window's elements; padding does not count."""
    return _pooling(lax.add, 0.0, _mean_of_windows, window_shape, strides, padding, spec)


def _flatten() -> Layer:
    def init_fun(rng: Array, input_shape: Sequence[int]) -> tuple[tuple, PyTree]:
        return (input_shape[0], math.prod(input_shape[1:])), ()

    def apply_fun(params: PyTree, inputs: Array, **kwargs: Any) -> Array:
        return jnp.reshape(inputs, (inputs.shape[0], math.prod(inputs.shape[1:])))

    return init_fun, apply_fun


def _identity() -> Layer:
    def init_fun(rng: Array, input_shape: Sequence[int]) -> tuple[Any, PyTree]:
        return input_shape, ()

    def apply_fun(params: PyTree, inputs: Array, **kwargs: Any) -> Array:
        return inputs

    return init_fun, apply_fun


Flatten = _flatten()
Identity = _identity()


def FanOut(num: int) -> Layer:
    """The same input `num` times."""

    def init_fun(rng: Array, input_shape: Sequence[int]) -> tuple[list, PyTree]:
        return [input_shape] * num, ()

    def apply_fun(params: PyTree, inputs: Array, **kwargs: Any) -> list[Array]:
        return [inputs] * num

    return init_fun, apply_fun


def _fan_in_sum() -> Layer:
    def init_fun(rng: Array, input_shape: Sequence[Any]) -> tuple[Any, PyTree]:
        return input_shape[0], ()

    def apply_fun(params: PyTree, inputs: Sequence[Array], **kwargs: Any) -> Array:
        return functools.reduce(operator.add, inputs)

    return init_fun, apply_fun


FanInSum = _fan_in_sum()


def FanInConcat(axis: int = -1) -> Layer:
    """Its inputs one after the other along `axis`."""

    def init_fun(rng: Array, input_shape: Sequence[Sequence[int]]) -> tuple[tuple, PyTree]:
        shape = list(input_shape[0])
        shape[axis] = sum(s[axis] for s in input_shape)
        return tuple(shape), ()

    def apply_fun(params: PyTree, inputs: Sequence[Array], **kwargs: Any) -> Array:
        return jnp.concatenate(inputs, axis)

    return init_fun, apply_fun


def Dropout(rate: ArrayLike, mode: str = "train") -> Layer:
    """Keeps each element with probability `rate`, scaled by its inverse, and zeros the others; in any mode but "train"
    it keeps all. `apply_fun` takes `rng`.
    """

    def init_fun(rng: Array, input_shape: Sequence[int]) -> tuple[Any, PyTree]:
        return input_shape, ()

    def apply_fun(params: PyTree, inputs: Array, **kwargs: Any) -> Array:
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError("Dropout layer requires apply_fun to be called with a PRNG key argument: "
                             "`apply_fun(params, inputs, rng=rng)`, where `rng` is a key (e.g. from `jax.random.key`).")
        if mode != "train":
            return inputs
        return jnp.where(random.bernoulli(rng, rate, inputs.shape), inputs / rate, 0)

    return init_fun, apply_fun


# -- combinators --------------------------------------------------------------------------------------


def _keys(rng: Array | None, count: int) -> Any:
    return (None,) * count if rng is None else random.split(rng, count)


def serial(*layers: Layer) -> Layer:
    """Layers one after the other; its parameters are the list of theirs."""
    init_funs, apply_funs = zip(*layers)

    def init_fun(rng: Array, input_shape: Any) -> tuple[Any, PyTree]:
        params = []
        for init in init_funs:
            rng, layer_rng = random.split(rng)
            input_shape, param = init(layer_rng, input_shape)
            params.append(param)
        return input_shape, params

    def apply_fun(params: PyTree, inputs: PyTree, **kwargs: Any) -> PyTree:
        keys = _keys(kwargs.pop("rng", None), len(apply_funs))
        for apply, param, key in zip(apply_funs, params, keys):
            inputs = apply(param, inputs, rng=key, **kwargs)
        return inputs

    return init_fun, apply_fun


def parallel(*layers: Layer) -> Layer:
    """Layers side by side: the first takes the first input, and so on (see `FanOut`)."""
    init_funs, apply_funs = zip(*layers)

    def init_fun(rng: Array, input_shape: Sequence[Any]) -> tuple[list, PyTree]:
        made = [init(key, shape) for init, key, shape in zip(init_funs, _keys(rng, len(init_funs)), input_shape)]
        return [shape for shape, _ in made], tuple(param for _, param in made)

    def apply_fun(params: PyTree, inputs: Sequence[Any], **kwargs: Any) -> list:
        keys = _keys(kwargs.pop("rng", None), len(apply_funs))
        return [f(p, x, rng=key, **kwargs) for f, p, x, key in zip(apply_funs, params, inputs, keys)]

    return init_fun, apply_fun


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """The layer that `make_layer` gives for the shape of the input."""

    def init_fun(rng: Array, input_shape: Any) -> tuple[Any, PyTree]:
        return make_layer(input_shape)[0](rng, input_shape)

    def apply_fun(params: PyTree, inputs: Array, **kwargs: Any) -> Array:
        return make_layer(inputs.shape)[1](params, inputs, **kwargs)

    return init_fun, apply_fun


__all__ = [
    "AvgPool", "BatchNorm", "Conv", "Conv1DTranspose", "ConvTranspose", "Dense", "Dropout", "Elu", "Exp",
    "FanInConcat", "FanInSum", "FanOut", "Flatten", "Gelu", "GeneralConv", "GeneralConvTranspose", "Identity",
    "LeakyRelu", "LogSoftmax", "MaxPool", "Relu", "Selu", "Sigmoid", "Softmax", "Softplus", "SumPool", "Tanh",
    "elementwise", "elu", "gelu", "glorot", "glorot_normal", "leaky_relu", "log_softmax", "logsoftmax", "normal",
    "ones", "parallel", "randn", "relu", "selu", "serial", "shape_dependent", "sigmoid", "softmax", "softplus",
    "standardize", "zeros",
]
