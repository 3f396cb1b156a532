"""YAML as people write it: 1e-3 is a number, which YAML 1.1 takes for a word."""

from __future__ import annotations

import re
from typing import Any

import yaml
from yaml import YAMLError as YAMLError


class _Loader(yaml.SafeLoader):
    """Nothing in a file is called or made but plain values."""


class _Dumper(yaml.SafeDumper):
    """What it writes as a word, the loader reads as one."""


_EXPONENT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+\Z")
for _each in (_Loader, _Dumper):
    _each.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("-+.0123456789"))


def dump(value: Any) -> str:
    """Keys in their order.

    >>> print(dump({"data": "7e12", "rate": 1e-3, "name": "digits"}), end="")
    data: '7e12'
    rate: 0.001
    name: digits
    """
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def load(text: str) -> Any:
    """
    >>> load("1e-3"), load("null"), load("[1, 2.5E2]"), load("lamb"), load("1e")
    (0.001, None, [1, 250.0], 'lamb', '1e')
    """
    return yaml.load(text, _Loader)
