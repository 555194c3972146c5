"""Arrays in storage: what one package writes the other reads, whole, cut and sharded, and in the background."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys

import jax
import numpy as np
import pytest

import styrax

VALUES = {
    "matrix": np.arange(6, dtype=np.float32).reshape(2, 3), "bfloat16": np.ones(3, jax.numpy.bfloat16.dtype),
    "scalar": np.int32(3), "empty": np.zeros((0, 2), np.float32), "one": np.ones((1, 1, 1), np.int8),
    "booleans": np.arange(4) > 1, "complex": np.array([1 + 2j, np.nan], np.complex64),
    "special": np.array([np.nan, np.inf, -np.inf, -0.0], np.float32),
}


def module(package):
    return importlib.import_module(f"{package.__name__}.experimental.array_serialization.serialization")


def device_sharding(package):
    return package.sharding.SingleDeviceSharding(package.devices()[0])


@pytest.mark.parametrize("path", ["/a/b", "gs://a/b/c", "s3://a/b/c/d", "/a/b/"])
@pytest.mark.parametrize("options", [{}, {"ocdbt": True}, {"process_idx": 1}, {"process_idx": 1, "ocdbt": True},
                                     {"driver": "zarr3"}])
def test_specifications(path, options):
    assert module(styrax).get_tensorstore_spec(path, **options) == module(jax).get_tensorstore_spec(path, **options)


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
def test_specifications_of_arrays(driver):
    ours, theirs = (module(p).get_tensorstore_spec("/a/b", arr=p.numpy.ones((0, 3)), driver=driver)
                    for p in (styrax, jax))
    assert ours == theirs


@pytest.mark.parametrize("path", ["a/b", "gs://a/b"])
def test_paths_that_are_refused(path):
    for package in (styrax, jax):
        with pytest.raises(ValueError, match="should be absolute|requires the bucket name"):
            module(package).get_tensorstore_spec(path, ocdbt=True)


@pytest.mark.parametrize("writer, reader", [(styrax, jax), (jax, styrax), (styrax, styrax)])
@pytest.mark.parametrize("options", [{}, {"ocdbt": True}, {"driver": "zarr3"}], ids=str)
def test_what_one_package_writes_the_other_reads(writer, reader, options, tmp_path):
    paths = [str(tmp_path / name) for name in VALUES]
    arrays = [writer.numpy.asarray(value) for value in VALUES.values()]
    managers = [module(p).GlobalAsyncCheckpointManager() for p in (writer, reader)]
    specs = [[module(p).get_tensorstore_spec(path, **options) for path in paths] for p in (writer, reader)]
    done = []
    managers[0].serialize(arrays, specs[0], on_commit_callback=lambda: done.append(True))
    managers[0].wait_until_finished()
    assert done == [True]
    read = managers[1].deserialize([device_sharding(reader)] * len(paths), specs[1])
    for value, array in zip(VALUES.values(), read):
        assert isinstance(array, reader.Array) and array.dtype == value.dtype
        np.testing.assert_array_equal(np.asarray(array), value)


def test_other_shapes_and_dtypes(tmp_path):
    spec = module(styrax).get_tensorstore_spec(tmp_path / "x")
    module(styrax).run_serialization([styrax.numpy.asarray(VALUES["matrix"])], [spec])
    for shape in ((3, 4), (1, 2), (0, 3), (2, 3)):
        ours, theirs = (module(p).run_deserialization([device_sharding(p)], [spec], [shape], [p.numpy.bfloat16])[0]
                        for p in (styrax, jax))
        assert ours.dtype == theirs.dtype and ours.shape == shape
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


SHARDS = """
import os, sys
import numpy as np
import styrax
from styrax.experimental.array_serialization.serialization import GlobalAsyncCheckpointManager

mesh = styrax.sharding.Mesh(np.array(styrax.devices()).reshape(2, 2), ("x", "y"))
value = np.arange(32, dtype=np.float32).reshape(8, 4)
shardings = [styrax.sharding.NamedSharding(mesh, styrax.sharding.PartitionSpec(*spec))
             for spec in (("x", "y"), ("y", None), (None, None))]
manager = GlobalAsyncCheckpointManager()
paths = [os.path.join(sys.argv[1], str(k)) for k in range(3)]
manager.serialize_with_paths([styrax.device_put(value, s) for s in shardings], paths)
read = manager.deserialize_with_paths(shardings[::-1], paths)
for array, sharding in zip(read, shardings[::-1], strict=True):
    assert array.sharding == sharding
    np.testing.assert_array_equal(np.asarray(array), value)
print(*sorted(f for f in os.listdir(paths[0]) if not f.startswith(".")))
"""


def test_shards(tmp_path):
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    command = [sys.executable, "-c", SHARDS, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "0.0 0.1 1.0 1.1\n"), done.stderr


def test_what_goes_wrong_is_raised_once(tmp_path):
    for package in (styrax, jax):
        manager = module(package).GlobalAsyncCheckpointManager()

        def fails():
            raise RuntimeError("no")

        manager.serialize_with_paths([package.numpy.ones(2)], [str(tmp_path / package.__name__)],
                                     on_commit_callback=fails)
        with pytest.raises(RuntimeError, match="no"):
            manager.wait_until_finished()
        manager.check_for_errors()
        with pytest.raises(ValueError, match="NOT_FOUND"):
            manager.deserialize_with_paths([device_sharding(package)], [str(tmp_path / "missing")])
