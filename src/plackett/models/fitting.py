"""Weights from a file into a network: which names fit, what stands before them, and what differs, in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torch import Tensor, nn

from plackett.errors import InputError
from plackett.models.weights import Held

# What wrappers put before a parameter's name: DataParallel, Lightning, torch.compile, and people.
PREFIXES = ("module.", "model.", "_orig_mod.", "backbone.", "network.", "net.", "encoder.", "student.", "teacher.")


@dataclass(frozen=True)
class Fit:
    """What of a file fits a network: `held` under the network's own names, and what does not."""

    held: dict[str, Tensor]
    wanted: dict[str, Tensor]
    prefix: str
    added: str
    others: tuple[str, ...]  # of the file, without the prefix

    @property
    def missing(self) -> list[str]:
        # Batch norms counted no batches before torch 0.4.1, and some exporters leave the count out.
        return [k for k in self.wanted if k not in self.held and not k.endswith("num_batches_tracked")]

    @property
    def unknown(self) -> list[str]:
        return [k for k in self.held if k not in self.wanted]

    @property
    def reshaped(self) -> list[str]:
        return [k for k, tensor in self.wanted.items() if k in self.held and tensor.shape != self.held[k].shape]

    @property
    def fitting(self) -> list[str]:
        return [k for k, tensor in self.held.items() if k in self.wanted and tensor.shape == self.wanted[k].shape]

    def head(self, outputs: int) -> int | None:
        """How many classes the file's last layer has, where that is all that differs from a network of `outputs`."""
        others = self.reshaped
        if not others or self.missing or self.unknown:
            return None
        rows = {self.held[k].shape[0] for k in others if self.held[k].dim()}
        alike = all(
            self.held[k].shape[1:] == self.wanted[k].shape[1:] and self.wanted[k].shape[0] == outputs for k in others
        )
        return rows.pop() if len(rows) == 1 and alike else None


def fit(network: nn.Module, held: Held) -> Fit:
    """The file's tensors under the names that fit the network best."""
    wanted = dict(network.state_dict())
    best = None
    for prefix, added in _candidates(list(held.tensors), list(wanted)):
        renamed = {f"{added}{k.removeprefix(prefix)}": t for k, t in held.tensors.items() if k.startswith(prefix)}
        found = Fit(renamed, wanted, prefix, added, tuple(k for k in held.tensors if not k.startswith(prefix)))
        score = len(found.fitting), sum(k in wanted for k in renamed)
        if best is None or score > best[0]:
            best = score, found
    assert best is not None
    return best[1]


def _candidates(names: list[str], wanted: list[str]) -> Iterable[tuple[str, str]]:
    """What may stand before the file's names, and what the network has before its own; nothing comes first."""
    prefixes = [""]
    for prefix in prefixes:  # which grows on the way: wrappers wrap wrappers
        longer = [prefix + known for known in PREFIXES if len(prefix) < 64]
        prefixes += [more for more in longer if any(name.startswith(more) for name in names)]
    if (common := common_prefix(names)) and common not in prefixes:
        prefixes.append(common)
    added = common_prefix(wanted)
    return [(prefix, before) for before in dict.fromkeys(["", added]) for prefix in prefixes]


def common_prefix(names: Iterable[str]) -> str:
    """What all names begin with, up to the last dot.

    >>> common_prefix(["module.fc.weight", "module.fc2.bias"]), common_prefix(["a.b"])
    ('module.', 'a.')
    """
    shared: list[str] = []
    for parts in zip(*(name.split(".")[:-1] for name in names), strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(f"{parts[0]}.")
    return "".join(shared)


def load(network: nn.Module, found: Fit, *, without: Iterable[str] = ()) -> None:
    left_out = set(without)
    network.load_state_dict({k: t for k, t in found.held.items() if k not in left_out}, strict=False)


def notes(found: Fit, path: object) -> list[str]:
    said = []
    n = len(found.held)
    if found.prefix:
        said.append(f"The names in {path} begin with {found.prefix!r} ({n} tensors), which was taken away.")
    if found.added:
        said.append(f"The network's names begin with {found.added!r}, which was put before those in {path}.")
    if found.others:
        said.append(f"{len(found.others)} other tensors in {path} were left alone (first {found.others[0]}).")
    return said


def check(found: Fit, what: str, path: object) -> None:
    """Every tensor of the network is in the file, in its shape, and nothing else is."""
    if not (found.missing or found.unknown or found.reshaped):
        return
    wrong = []
    for keys, words in ((found.missing, "missing"), (found.unknown, "unknown to it")):
        if keys:
            wrong.append(f"{len(keys)} {_are(keys)} {words} (first {keys[0]})")
    if keys := found.reshaped:
        key = keys[0]
        shapes = f"{list(found.held[key].shape)}, not {list(found.wanted[key].shape)}"
        wrong.append(f"{len(keys)} {'has' if len(keys) == 1 else 'have'} another shape (first {key}: {shapes})")
    prefix = found.prefix or common_prefix(found.held)
    shared = f" All names in the file begin with {prefix!r}." if prefix and not found.others else ""
    raise InputError(
        f"{path} does not hold the weights of {what}: {len(found.fitting)} of its {len(found.wanted)} tensors fit; "
        f"{'; '.join(wrong)}.{shared}"
    )


def _are(keys: list[str]) -> str:
    return "is" if len(keys) == 1 else "are"
