"""Train a perceptron and a small convolutional network on handwritten digits.

This is a plain JAX program. It runs unchanged under JAX (`python digits.py`) and under Styrax
(`python -m styrax digits.py`). It prints the loss and the accuracy on held-out images while it
trains, and leaves a picture of both in `digits.png`.
"""

import sys
import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

BATCH = 64
TEST_IMAGES = 360
CLASSES = 10


def load_images():
    """Read the data set: images scaled to [0, 1] of shape (1797, 8, 8, 1), and their labels."""
    with np.load(Path(__file__).with_name("digits.npz")) as archive:
        images = archive["images"].astype(np.float32)[..., None] / 16.0
        return images, archive["labels"].astype(np.int32)


def dense_layer(key, inputs, outputs):
    weights = jax.random.normal(key, (inputs, outputs)) * jnp.sqrt(2.0 / inputs)
    return {"w": weights, "b": jnp.zeros(outputs)}


def conv_layer(key, inputs, outputs):
    weights = jax.random.normal(key, (3, 3, inputs, outputs)) * jnp.sqrt(2.0 / (9 * inputs))
    return {"w": weights, "b": jnp.zeros(outputs)}


def init_mlp(key):
    keys = jax.random.split(key, 3)
    sizes = [(64, 256), (256, 128), (128, CLASSES)]
    return [dense_layer(k, m, n) for k, (m, n) in zip(keys, sizes)]


def mlp(params, images):
    """Logits of a perceptron with two hidden layers."""
    x = images.reshape(images.shape[0], -1)
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def init_conv(key):
    keys = jax.random.split(key, 3)
    return {
        "conv1": conv_layer(keys[0], 1, 16),
        "conv2": conv_layer(keys[1], 16, 32),
        "dense": dense_layer(keys[2], 4 * 4 * 32, CLASSES),
    }


def convolve(layer, x):
    y = lax.conv_general_dilated(
        x, layer["w"], window_strides=(1, 1), padding="SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return y + layer["b"]


def conv_net(params, images):
    """Logits of two 3x3 convolutions, a 2x2 max pool and a linear layer."""
    x = jax.nn.relu(convolve(params["conv1"], images))
    x = jax.nn.relu(convolve(params["conv2"], x))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = x.reshape(x.shape[0], -1)
    return x @ params["dense"]["w"] + params["dense"]["b"]


def cross_entropy(network, params, images, labels):
    log_probs = jax.nn.log_softmax(network(params, images))
    picked = jnp.take_along_axis(log_probs, labels[:, None], axis=1)
    decay = sum(jnp.sum(leaf**2) for leaf in jax.tree_util.tree_leaves(params))
    return -jnp.mean(picked) + 1e-3 * decay


@partial(jax.jit, static_argnums=0)
def train_step(network, params, velocity, images, labels, rate):
    """One step of gradient descent with momentum."""
    loss, grads = jax.value_and_grad(partial(cross_entropy, network))(params, images, labels)
    velocity = jax.tree_util.tree_map(lambda v, g: 0.9 * v + g, velocity, grads)
    params = jax.tree_util.tree_map(lambda p, v: p - rate * v, params, velocity)
    return params, velocity, loss


@partial(jax.jit, static_argnums=0)
def predict(network, params, images):
    return jnp.argmax(network(params, images), axis=1)


def train(name, network, params, data, key, epochs, rate):
    """Train for a number of epochs; return the predictions on the test images and the loss curve."""
    (images, labels), (test_images, test_labels) = data
    batches = images.shape[0] // BATCH
    velocity = jax.tree_util.tree_map(jnp.zeros_like, params)
    curve = []
    start = time.perf_counter()
    for epoch in range(1, epochs + 1):
        key, shuffle = jax.random.split(key)
        order = jax.random.permutation(shuffle, images.shape[0])[: batches * BATCH]
        losses = []
        step_size = rate * 0.5 * (1 + np.cos(np.pi * (epoch - 1) / epochs))
        for rows in order.reshape(batches, BATCH):
            batch = images[rows], labels[rows]
            params, velocity, loss = train_step(network, params, velocity, *batch, step_size)
            losses.append(loss)
        curve.extend(float(loss) for loss in losses)
        if epoch == 1 or epoch % 5 == 0:
            correct = jnp.mean(predict(network, params, test_images) == test_labels)
            seconds = time.perf_counter() - start
            mean_loss = np.mean(curve[-batches:])
            print(
                f"{name:4}  epoch {epoch:2}  loss {mean_loss:6.4f}  test {100 * float(correct):5.1f} %"
                f"  {seconds:5.1f} s",
                flush=True,
            )
    return np.asarray(predict(network, params, test_images)), curve


def draw(path, curves, test_images, test_labels, predictions):
    """Write the loss curves and the misclassified digits as a picture."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    wrong = [
        (name, index) for name, guess in predictions.items() for index in np.flatnonzero(guess != test_labels)
    ][:16]
    figure = plt.figure(figsize=(11, 4.5), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1.2, 1])
    axes = left.subplots()
    for name, curve in curves.items():
        axes.plot(curve, label=name, linewidth=0.9)
    axes.set(yscale="log", xlabel="step", ylabel="training loss", title="loss")
    axes.legend()
    right.suptitle("misclassified digits: label → guess")
    grid = right.subplots(4, 4)
    for panel in grid.flat:
        panel.axis("off")
    for panel, (name, index) in zip(grid.flat, wrong):
        panel.imshow(test_images[index, :, :, 0], cmap="gray_r")
        panel.set_title(f"{name}: {test_labels[index]} → {predictions[name][index]}", fontsize=8)
    figure.savefig(path, dpi=110)


def main():
    picture = Path(sys.argv[1] if len(sys.argv) > 1 else "digits.png")
    images, labels = load_images()
    key = jax.random.key(2)
    split_key, mlp_key, conv_key, mlp_order, conv_order = jax.random.split(key, 5)
    order = np.asarray(jax.random.permutation(split_key, len(labels)))
    test, rest = order[:TEST_IMAGES], order[TEST_IMAGES:]
    data = [(jnp.asarray(images[rows]), jnp.asarray(labels[rows])) for rows in (rest, test)]
    print(f"{len(rest)} images to train on, {len(test)} held out")

    runs = {
        "mlp": (mlp, init_mlp(mlp_key), mlp_order, 30),
        "conv": (conv_net, init_conv(conv_key), conv_order, 20),
    }
    predictions, curves = {}, {}
    for name, (network, params, order_key, epochs) in runs.items():
        predictions[name], curves[name] = train(name, network, params, data, order_key, epochs, rate=0.1)

    draw(picture, curves, images[test], labels[test], predictions)
    print(f"picture: {picture}")
    accuracy = {name: 100 * np.mean(guess == labels[test]) for name, guess in predictions.items()}
    print(f"test accuracy: mlp {accuracy['mlp']:.1f} % conv {accuracy['conv']:.1f} %")


if __name__ == "__main__":
    main()
