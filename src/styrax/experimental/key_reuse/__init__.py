"""Checks that no random key is used twice: `with jax.debug_key_reuse(True): …`.

With the setting on, a function that uses a key again raises `KeyReuseError` when it is traced, and so does an eager
operation on a key that was used before. `random.clone` makes a key that may be used again.
"""
