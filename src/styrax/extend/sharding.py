"""Shardings as XLA's programs hold them."""

from __future__ import annotations

from ..core.arrays.gspmd_sharding import GSPMDSharding
from ..core.arrays.hlo_shardings import HloSharding, OpSharding


def get_op_sharding_from_serialized_proto(sharding: bytes) -> OpSharding:
    """The message that was stored."""
    proto = OpSharding()
    proto.ParseFromString(sharding)
    return proto


def get_hlo_sharding_from_serialized_proto(sharding: bytes) -> HloSharding:
    """The sharding whose message was stored."""
    return HloSharding.from_proto(get_op_sharding_from_serialized_proto(sharding))


def get_serialized_proto_from_hlo_sharding(sharding: HloSharding) -> bytes:
    """The message of a sharding, to be stored."""
    return sharding.to_proto().SerializeToString()


__all__ = ["GSPMDSharding", "get_hlo_sharding_from_serialized_proto", "get_op_sharding_from_serialized_proto",
           "get_serialized_proto_from_hlo_sharding"]
