"""What ImageNet's classes are called: its folders' names (wnids) and words, as timm lists them."""

from __future__ import annotations

import functools

from plackett.errors import InputError, did_you_mean
from plackett.models.made import library

SUBSETS = ("imagenet-1k", "imagenet-12k", "imagenet-21k", "imagenet-22k")


@functools.cache
def wnids(subset: str) -> tuple[str, ...]:
    """
    >>> wnids("imagenet-1k")[:2]
    ('n01440764', 'n01443537')
    """
    if subset not in SUBSETS:
        raise InputError(f"There is no list of classes {subset!r}; {did_you_mean(subset, SUBSETS)}.")
    return tuple(library("timm.data", "ImageNet's class names").ImageNetInfo(subset).label_names())


@functools.cache
def words(subset: str) -> tuple[str, ...]:
    """
    >>> words("imagenet-1k")[:2]
    ('tench, Tinca tinca', 'goldfish, Carassius auratus')
    """
    wnids(subset)
    return tuple(library("timm.data", "ImageNet's class names").ImageNetInfo(subset).label_descriptions())
