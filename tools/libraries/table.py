"""The libraries, pinned to releases that work with JAX 0.10.2."""

from __future__ import annotations

from tools.libraries.library import Library

JAX = ("jax==0.10.2", "jaxlib==0.10.2")
RUNNER = ("pytest==9.2.0",)

_TENSORFLOW = "imports TensorFlow"

_ROWS = (
    Library("Optax", "optax", "0.2.8", ("optax/**/*_test.py",), every=4, limit=600, needs=("scikit-learn==1.9.1",)),
    Library("Chex", "chex", "0.1.92", ("chex/**/*_test.py",), needs=("dm-tree==0.1.10",)),
    Library("Flax core", "flax", "0.12.8", ("tests/core/**/*_test.py", "tests/*_test.py"), {
        "tests/io_test.py": _TENSORFLOW,
        "tests/tensorboard_test.py": _TENSORFLOW,
    }),
    Library("Flax linen", "flax", "0.12.8", ("tests/linen/*_test.py",), every=3, limit=600, devices=4),
    Library("Flax nnx", "flax", "0.12.8", ("tests/nnx/**/*_test.py", "tests/nnx/**/test_*.py"), every=4, limit=600,
            devices=4, needs=("cloudpickle==3.1.2",)),
    Library("Haiku", "dm-haiku", "0.0.17", ("haiku/**/*_test.py",), {
        "haiku/_src/transform_test.py": _TENSORFLOW,
        "haiku/_src/reshape_test.py": "imports `jax2tf`, which JAX has removed",
        "haiku/_src/integration/jax2tf_test.py": _TENSORFLOW,
        "haiku/_src/integration/checkpoint_test.py": "its files are not in the source distribution",
    }, every=6, needs=("dill==0.4.1",)),
    Library("Distrax", "distrax", "0.1.9", ("distrax/**/*_test.py",), every=12, needs=("mock==5.2.0",)),
    Library("RLax", "rlax", "0.1.9", ("rlax/**/*_test.py",), devices=4),
    Library("jaxopt", "jaxopt", "0.8.5", examples="jaxopt_test.py"),
    Library("Orbax", "orbax-checkpoint", "0.12.8", examples="orbax_test.py"),
    Library("Equinox", "equinox", "0.13.8", examples="equinox_test.py"),
    Library("diffrax", "diffrax", "0.7.2", examples="diffrax_test.py"),
    Library("lineax", "lineax", "0.1.1", examples="lineax_test.py"),
    Library("optimistix", "optimistix", "0.1.0", examples="optimistix_test.py"),
    Library("NumPyro", "numpyro", "0.22.0", ("test/test_*.py",), {
        "test/test_examples.py": "runs scripts that are not in the source distribution",
    }, every=2, limit=600, needs=("funsor==0.4.8",)),
    Library("Blackjax", "blackjax", "1.7.1", ("tests/**/test_*.py",), {
        "tests/test_benchmarks.py": "asks for a plugin that measures",
    }, every=6),
    Library("TFP on JAX", "tfp-nightly", "0.26.0.dev20261027", examples="tfp_test.py"),
    Library("OTT", "ott-jax", "0.6.0", examples="ott_test.py"),
    Library("e3nn-jax", "e3nn-jax", "0.21.0", ("tests/_src/**/*_test.py",), every=4),
    Library("tinygp", "tinygp", "0.3.1", ("tests/**/test_*.py",)),
    Library("dynamax", "dynamax", "1.0.3", ("dynamax/**/*_test.py", "dynamax/**/test_*.py"), every=6, wheel=True),
    Library("gymnax", "gymnax", "1.0.1", examples="gymnax_test.py"),
    Library("Jraph", "jraph", "0.0.6.dev0", ("jraph/_src/*_test.py", "jraph/experimental/*_test.py")),
    Library("Penzai", "penzai", "0.2.5", ("tests/**/*_test.py",), every=6, devices=8),
    Library("einops", "einops", "0.8.2", ("einops/tests/test_*.py",), {
        "einops/tests/test_examples.py": "NumPy and PyTorch only",
    }, variables={"EINOPS_TEST_BACKENDS": "numpy,jax"}),
    Library("jaxtyping", "jaxtyping", "0.3.11", examples="jaxtyping_test.py", needs=("beartype==0.23.1",)),
)

LIBRARIES = {library.name: library for library in _ROWS}
