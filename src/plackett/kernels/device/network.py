"""A bitonic sorting network over the bits of an element's rank.

Rank bits are laid out as the registers of a thread first (`REGISTERS` of them), then the lanes of a warp (five), then
the warps of a row. Which class starts where does not matter, since a key carries its class; so the loader deals classes
to threads as coalesced loads want them, and the network starts from there with most of its steps inside a thread.

Runs that should fall are sorted as rising runs of complemented keys: an XOR a stage instead of a direction in each
step, and nothing at all where the direction is a register's and the compiler knows it.
"""

import triton
import triton.language as tl

from plackett.kernels.device.exchange import exchange
from plackett.kernels.device.scans import bit

_LANE_BITS = tl.constexpr(5)


@triton.jit
def _step_in_thread(h, N: tl.constexpr, J: tl.constexpr, STAGE: tl.constexpr, REGISTERS: tl.constexpr):
    low = tl.min(h, N - 1 - J, keep_dims=True)
    high = tl.max(h, N - 1 - J, keep_dims=True)
    right = bit(N, J) == 1
    if (STAGE < REGISTERS) and (STAGE < N):
        right = right != (bit(N, STAGE) == 1)
    return tl.where(right, high, low)


@triton.jit
def _step_in_warp(h, N: tl.constexpr, J: tl.constexpr):
    other = h ^ tl.xor_sum(h, N - 1 - J, keep_dims=True)  # one shuffle; the two XORs cancel
    return tl.where((h > other) != (bit(N, J) == 1), other, h)


@triton.jit
def _step_across_warps(h, base, N: tl.constexpr, J: tl.constexpr):
    rank = tl.reshape(tl.arange(0, 1 << N), [2] * N)
    other = exchange(base, h, rank, rank ^ (1 << J))
    return tl.where((h > other) != (bit(N, J) == 1), other, h)


@triton.jit
def _step(h, base, N: tl.constexpr, J: tl.constexpr, STAGE: tl.constexpr, REGISTERS: tl.constexpr, PTX: tl.constexpr):
    if J < REGISTERS:
        return _step_in_thread(h, N, J, STAGE, REGISTERS)
    elif (J < REGISTERS + _LANE_BITS) or not PTX:
        return _step_in_warp(h, N, J)
    else:
        return _step_across_warps(h, base, N, J)


@triton.jit
def sort(keys, base, N: tl.constexpr, REGISTERS: tl.constexpr, PTX: tl.constexpr):
    """Unique int32 `keys`, `[2] * N`, in rising order by rank."""
    h = keys
    for stage in tl.static_range(1, N + 1):
        if (stage >= REGISTERS) and (stage < N):
            h = h ^ -bit(N, stage)
        for step in tl.static_range(stage):
            h = _step(h, base, N, stage - 1 - step, stage, REGISTERS, PTX)
        if (stage >= REGISTERS) and (stage < N):
            h = h ^ -bit(N, stage)
    return h
