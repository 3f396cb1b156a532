"""Whether labels and logits are in the same order, seen from what a teacher says of pictures.

Each class's most frequent answer on one half of its pictures is tried as its label on the other half, and the reverse:
a mapping that is read off the pictures it is tried on would always look better than the labels. No two classes get the
same answer, or a teacher that says one thing of every picture would look like one whose labels are exchanged.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from plackett.experiments.findings import ClassOrder

FAR_BETTER = 0.2  # of the pictures
AT_LEAST = 3  # pictures of a class on either side, before it is named


def class_order(first: Tensor, targets: Tensor, classes: Sequence[str], otherwise: float = 0.0) -> ClassOrder:
    """`first` is what the teacher says of each picture, `[N]`, and `targets` its label.

    `otherwise` is the share that it gets right as labelled where it is shown pictures in another way: an order that
    explains less than that explains nothing.

    >>> said = torch.tensor([1, 1, 1, 1, 0, 0, 0, 0])
    >>> class_order(said, 1 - said, ["cat", "dog"]).as_labelled
    0.0
    """
    n = len(classes)
    order = targets.argsort(stable=True)
    first, targets = first[order], targets[order]
    begins = torch.searchsorted(targets, targets)
    half = (torch.arange(len(targets)) - begins) % 2
    counts = torch.stack([_counts(first[half == h], targets[half == h], n) for h in (0, 1)])
    both = (counts.sum(-1) > 0).all(0)  # classes with a picture on either side
    judged = both[targets]
    if not bool(judged.any()):
        return ClassOrder(judged=0)
    answers = torch.stack([_one_to_one(each) for each in counts])  # [2, n]
    other = answers[1 - half, targets]
    relabelled = (first == other)[judged].double().mean().item()
    as_labelled = (first == targets)[judged].double().mean().item()
    permuted = relabelled > max(as_labelled, otherwise) + FAR_BETTER
    agreed = both & (answers[0] == answers[1]) & (counts.sum(-1) >= AT_LEAST).all(0)
    taken = {y: int(answers[0, y]) for y in agreed.nonzero().flatten().tolist() if int(answers[0, y]) not in (y, -1)}
    swapped = [(y, z) for y, z in taken.items() if y < z and taken.get(z) == y]
    return ClassOrder(
        judged=int(judged.sum()),
        relabelled=relabelled,
        as_labelled=as_labelled,
        permuted=permuted,
        swapped=tuple((classes[y], classes[z]) for y, z in swapped),
        moved=tuple((classes[y], classes[z]) for y, z in taken.items()),
        hint=_hint(taken, classes) if permuted else None,
    )


def _counts(first: Tensor, targets: Tensor, n: int) -> Tensor:
    return torch.bincount(targets * n + first, minlength=n * n).reshape(n, n)


def _one_to_one(counts: Tensor) -> Tensor:
    """The most frequent answer on pictures of each class, `[n]`; -1 where another class has it more often."""
    most, answers = counts.max(-1)
    holder: dict[int, int] = {}
    for y in most.argsort(descending=True, stable=True).tolist():
        holder.setdefault(int(answers[y]), y)
    kept = torch.full_like(answers, -1)
    kept[list(holder.values())] = torch.tensor(list(holder))
    return kept


def _hint(taken: dict[int, int], classes: Sequence[str]) -> str | None:
    """Orders that people mix up."""
    if not taken:
        return None
    if all(name.strip().isdigit() for name in classes):
        ranks = {int(name): rank for rank, name in enumerate(sorted(classes, key=int))}
        if _most(taken, {y: ranks[int(name)] for y, name in enumerate(classes)}):
            return "the teacher counts the classes as numbers (2 before 10), the folders are in the order of letters"
    n = len(classes)
    for step in (1, -1):
        if _most(taken, {y: (y + step) % n for y in range(n)}):
            return f"the teacher's classes stand one place {'further on' if step == 1 else 'before'}"
    if _most(taken, {y: n - 1 - y for y in range(n)}):
        return "the teacher's classes stand in the reverse order"
    return None


def _most(taken: dict[int, int], expected: dict[int, int]) -> bool:
    return sum(expected[y] == z for y, z in taken.items()) > 0.8 * len(taken)
