"""Long short-term memory: stacked layers, in one or both directions, over sequences of different lengths.

The recurrence is that of Hochreiter and Schmidhuber (Neural Computation 9, 1997) with forget gates and a bias on both
the inputs and the state; gates are in the order input, forget, cell, output. A layer in both directions is two
*pseudo-layers*, forward and backward, whose outputs lie side by side. All weights are one vector: of each
pseudo-layer `W_ih` and `W_hh`, then of each pseudo-layer `b_ih` and `b_hh`.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from .. import lax, nn, random
from .. import numpy as jnp
from ..core.arrays.array import Array
from ..core.types.typing import ArrayLike, Shape
from ..lax.reductions.contractions import PrecisionLike
from ..transforms.jit import jit

Weights = dict[int, Array]  # by the number of the pseudo-layer


def _shapes(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> tuple[list[Shape], list[Shape]]:
    """The shapes of all matrices and of all biases, in the order in which they lie in the vector of weights."""
    directions = 2 if bidirectional else 1
    gates = 4 * hidden_size
    matrices: list[Shape] = []
    for pseudo_layer in range(directions * num_layers):
        width = input_size if pseudo_layer < directions else directions * hidden_size
        matrices += [(gates, width), (gates, hidden_size)]
    return matrices, [(gates,)] * len(matrices)


def get_num_params_in_lstm(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> int:
    """The size of the vector of weights.

    Example:
      >>> from styrax.experimental import rnn
      >>> rnn.get_num_params_in_lstm(2, 3, 1, False)
      84
    """
    matrices, biases = _shapes(input_size, hidden_size, num_layers, bidirectional)
    return sum(math.prod(map(int, shape)) for shape in matrices + biases)


def init_lstm_weight(rng: ArrayLike, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Array:
    """A vector of weights, uniform between -k and k, where k is the root of 1 / `hidden_size`."""
    size = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    k = np.sqrt(1.0 / hidden_size)
    return random.uniform(rng, (size,), np.float32, minval=-k, maxval=k)


@partial(jit, static_argnums=(1, 2, 3, 4))
def unpack_lstm_weights(weights: Array, input_size: int, hidden_size: int, num_layers: int,
                        bidirectional: bool) -> tuple[Weights, Weights, Weights, Weights]:
    """The parts of a vector of weights.

    Args:
      weights: a vector of `get_num_params_in_lstm` numbers.
      input_size, hidden_size, num_layers, bidirectional: as for `lstm`.

    Returns:
      `W_ih` (4 hidden × inputs), `W_hh` (4 hidden × hidden), `b_ih` and `b_hh` (4 hidden), each by pseudo-layer.

    Raises:
      TypeError: the vector is too short.
    """
    matrices, biases = _shapes(input_size, hidden_size, num_layers, bidirectional)
    parts, start = [], 0
    for shape in matrices + biases:
        size = math.prod(map(int, shape))
        parts.append(jnp.reshape(weights[start:start + size], shape))
        start += size
    w, b = parts[:len(matrices)], parts[len(matrices):]
    w_ih, w_hh, b_ih, b_hh = (dict(enumerate(kind)) for kind in (w[::2], w[1::2], b[::2], b[1::2]))
    return w_ih, w_hh, b_ih, b_hh


@partial(jit, static_argnums=(1, 2, 3, 4))
def swap_lstm_gates(weights: Array, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Array:
    """The vector of weights with the gates in the order input, forget, output, cell."""
    matrices, biases = _shapes(input_size, hidden_size, num_layers, bidirectional)
    parts, start = [], 0
    for shape in matrices + biases:
        size = math.prod(map(int, shape))
        first, second, cell, output = jnp.split(weights[start:start + size], 4)
        parts += [first, second, output, cell]
        start += size
    return jnp.concatenate(parts)


def _reversed(sequences: Array, lengths: Array) -> Array:
    """Time-major sequences, each from its own last step to the first, then what follows its last step."""
    steps = sequences.shape[0]
    at = (lengths[None] - 1 - jnp.arange(steps)[:, None]) % steps
    return jnp.take_along_axis(sequences, at[..., None], axis=0)


def _pseudo_layer(x: Array, h_0: Array, c_0: Array, weights: tuple[Array, ...], lengths: Array,
                  precision: PrecisionLike) -> tuple[Array, Array, Array]:
    """Outputs at all steps, zero after the last, with the state and the cell after the last; `x` is time-major."""
    w_ih, w_hh, b_ih, b_hh = weights

    def step(carry: tuple[Array, Array], at: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        h, c = carry
        into, forget, cell, output = jnp.split(at + jnp.matmul(h, w_hh.T, precision=precision), 4, axis=-1)
        c = nn.sigmoid(forget) * c + nn.sigmoid(into) * jnp.tanh(cell)
        h = nn.sigmoid(output) * jnp.tanh(c)
        return (h, c), (h, c)

    projected = jnp.matmul(x, w_ih.T, precision=precision) + (b_ih + b_hh)[None, None]
    _, (states, cells) = lax.scan(step, (h_0, c_0), projected)
    last = (lengths - 1, jnp.arange(lengths.shape[0]))
    present = jnp.arange(x.shape[0])[:, None] < lengths[None]
    return jnp.where(present[..., None], states, 0), states[last], cells[last]


def _check(seq_lengths: ArrayLike, dropout: float) -> None:
    if jnp.result_type(seq_lengths) != np.int32:
        raise NotImplementedError("`seq_lengths` can only be int32.")
    if dropout > 0:
        raise NotImplementedError("Dropout between the layers of an LSTM is not supported.")


def _layers(x: Array, h_0: Array, c_0: Array, weights: tuple[Weights, ...], lengths: Array, num_layers: int,
            bidirectional: bool, precision: PrecisionLike) -> tuple[Array, Array, Array]:
    directions = 2 if bidirectional else 1
    inputs, states, cells = jnp.swapaxes(x, 0, 1), [], []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            k = layer * directions + direction
            turned = _reversed(inputs, lengths) if direction else inputs
            y, h, c = _pseudo_layer(turned, h_0[k], c_0[k], tuple(kind[k] for kind in weights), lengths, precision)
            if direction:
                present = jnp.arange(y.shape[0])[:, None, None] < lengths[None, :, None]
                y = jnp.where(present, _reversed(y, lengths), 0)
            outputs.append(y)
            states.append(h)
            cells.append(c)
        inputs = jnp.concatenate(outputs, axis=-1)
    return jnp.swapaxes(inputs, 0, 1), jnp.stack(states), jnp.stack(cells)


@partial(jit, static_argnums=(8, 9, 10, 11, 12))
def lstm_ref(x: Array, h_0: Array, c_0: Array, W_ih: Weights, W_hh: Weights, b_ih: Weights, b_hh: Weights,
             seq_lengths: Array, input_size: int, hidden_size: int, num_layers: int, dropout: float,
             bidirectional: bool) -> tuple[Array, Array, Array]:
    """`lstm` with the weights in parts, as `unpack_lstm_weights` gives them."""
    _check(seq_lengths, dropout)
    return _layers(x, h_0, c_0, (W_ih, W_hh, b_ih, b_hh), seq_lengths, num_layers, bidirectional, None)


@partial(jit, static_argnums=(5, 6, 7, 8, 9, 10))
def lstm(x: Array, h_0: Array, c_0: Array, weights: Array, seq_lengths: Array, input_size: int, hidden_size: int,
         num_layers: int, dropout: float, bidirectional: bool,
         precision: PrecisionLike = None) -> tuple[Array, Array, Array]:
    """Layers of long short-term memory over a batch of sequences.

    Args:
      x: inputs, batch × steps × `input_size`.
      h_0, c_0: the first states and cells, pseudo-layers × batch × `hidden_size`.
      weights: a vector of `get_num_params_in_lstm` numbers.
      seq_lengths: how long each sequence of the batch is, int32.
      input_size, hidden_size, num_layers: the sizes of the network.
      dropout: has to be zero.
      bidirectional: whether each layer also runs from the last step to the first.
      precision: of the products.

    Returns:
      outputs, batch × steps × (directions · `hidden_size`), zero after the end of a sequence; the last states; the
      last cells.

    Raises:
      NotImplementedError: lengths that are not int32, and dropout.
    """
    _check(seq_lengths, dropout)
    parts = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    return _layers(x, h_0, c_0, parts, seq_lengths, num_layers, bidirectional, precision)
