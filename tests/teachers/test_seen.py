"""A teacher that reads the student's batches sees what it would have seen itself, and answers in the data's order."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from plackett.data import Batch
from plackett.data.sight import Sight
from plackett.errors import InputError
from plackett.models.named import Named, named
from plackett.teachers import Moved, SeeingTeacher, match

STUDENT = Sight(32, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), crop=1.0)
TEACHER = Sight(32, (127 / 255,) * 3, (128 / 255,) * 3, crop=1.0)


def normalised(pixels: torch.Tensor, sight: Sight) -> torch.Tensor:
    mean, std = (torch.tensor(v, dtype=torch.float64).view(-1, 1, 1) for v in (sight.mean, sight.std))
    return ((pixels.double() / 255 - mean) / std).float()


def batch(inputs: torch.Tensor) -> Batch:
    n = len(inputs)
    return Batch(inputs, torch.zeros(n, dtype=torch.long), torch.arange(n), 0)


def a_teacher(outputs: int = 4, sight: Sight = TEACHER, names: tuple[str, ...] | None = None) -> Named:
    network = named("resnet20", classes=outputs).network
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
    return Named(network, "resnet20", sight, outputs, names, weights="a file")


def test_the_students_normalisation_becomes_the_teachers() -> None:
    """Every byte that a pixel can be, within two roundings of what the teacher's own loader would have made."""
    pixels = torch.arange(256, dtype=torch.uint8).repeat(12).reshape(1, 3, 32, 32)
    teacher = SeeingTeacher(a_teacher(), STUDENT, "abcd")
    shown = teacher.network.shown(normalised(pixels, STUDENT))
    own = normalised(pixels, TEACHER)
    assert (shown - own).abs().max() < 1e-6
    assert not torch.allclose(normalised(pixels, STUDENT), own, atol=0.1)


def test_logits_are_those_of_the_network_itself() -> None:
    given = a_teacher()
    pixels = torch.randint(0, 256, (3, 3, 32, 32), dtype=torch.uint8)
    teacher = SeeingTeacher(given, STUDENT, "abcd")
    own = given.network.eval()(normalised(pixels, TEACHER))
    torch.testing.assert_close(teacher.signals(batch(normalised(pixels, STUDENT))).logits, own, rtol=1e-4, atol=1e-4)


def test_another_size_is_resized_as_is_said() -> None:
    given = a_teacher(sight=Sight(48, TEACHER.mean, TEACHER.std))
    teacher = SeeingTeacher(given, STUDENT, "abcd")
    x = torch.randn(2, 3, 32, 32)
    shown = teacher.network.shown(x)
    again = nn.functional.interpolate(x, (48, 48), mode="bicubic", antialias=True)
    assert torch.equal(shown, again * teacher.network.scale + teacher.network.shift)
    assert teacher.network.shown(torch.randn(2, 3, 48, 48)).shape == (2, 3, 48, 48)


def test_logits_stand_in_the_datas_order_and_what_is_not_offered_is_minus_infinity() -> None:
    given = a_teacher(4, STUDENT, ("eel", "dog", "bee", "cat"))
    x = torch.randn(2, 3, 32, 32)
    own = given.network.eval()(x)
    said = SeeingTeacher(given, STUDENT, ["cat", "dog", "fox", "bee", "eel"]).signals(batch(x)).logits
    torch.testing.assert_close(said[:, [0, 1, 3, 4]], own[:, [3, 1, 2, 0]])
    assert bool((said[:, 2] == -torch.inf).all())
    assert said.dtype == torch.float32


def test_its_last_layer_is_float32_though_its_classes_are_not_the_datas() -> None:
    given = a_teacher(1000, STUDENT, tuple(f"c{i}" for i in range(1000)))
    teacher = SeeingTeacher(given, STUDENT, ["c3", "c1", "new"])
    with torch.autocast("cpu", torch.bfloat16):
        own = teacher.network.network(torch.randn(2, 3, 32, 32))
    assert own.dtype == torch.float32


def test_a_teacher_that_moves_is_noticed() -> None:
    teacher = SeeingTeacher(a_teacher(), STUDENT, "abcd")
    assert teacher.moved() == ()
    teacher.signals(batch(torch.randn(2, 3, 32, 32)))
    teacher.tune(channels_last=True, compiled=False)
    assert teacher.moved() == ()
    teacher.network.network.train()
    teacher.signals(batch(torch.randn(2, 3, 32, 32)))
    assert teacher.moved()[:2] == ("bn1.running_mean", "bn1.running_var")


def test_one_bit_of_one_weight_is_noticed() -> None:
    layer = nn.Linear(3, 2).bfloat16()
    moved = Moved(layer)
    layer.weight.data[1, 2] = layer.weight.data[1, 2].nextafter(torch.tensor(9.0, dtype=torch.bfloat16))
    assert moved() == ("weight",)


@pytest.mark.parametrize(("given", "sentence"), [
    (Named(nn.Identity(), "timm:resnet18", STUDENT, 4, None),
     "The teacher timm:resnet18 has no weights: name a file with --teacher-weights, or pretrained for its "
     "library's own."),
    (Named(nn.Identity(), "timm:resnet18", STUDENT, 4, None, "pretrained", True),
     "The teacher timm:resnet18 has a head of 4 classes that was drawn at random; make it with the head that its "
     "weights have."),
    (Named(nn.Identity(), "timm:resnet18", STUDENT, 1000, None, "pretrained"),
     "Teacher has 1000 classes, data 4, and nothing says what the teacher's are called: name them with "
     "--teacher-classes FILE (one a line, in the order of its logits), or take a teacher that was trained on these "
     "classes."),
    (Named(nn.Identity(), "timm:resnet18", STUDENT, 3, ("x", "y", "d"), "pretrained"),
     "Teacher and data share 1 class name, and a choice needs 2: the teacher's begin with 'x', 'y', 'd', the data's "
     "with 'a', 'b', 'c' and 1 more. If the teacher's logits are in the data's order, say so with "
     "--teacher-classes same."),
    (Named(nn.Identity(), "timm:resnet18", STUDENT, 4, ("a", "b", "c"), "pretrained"),
     "3 names are given for the teacher's classes, but it gives 4 logits a picture."),
    (Named(nn.Identity(), "x", Sight(8, (0.5,), (0.5,)), 4, None, "pretrained"),
     "The teacher reads pictures of 1 channels, the student of 3; they must be shown the same."),
])  # fmt: skip
def test_a_teacher_that_cannot_teach_gets_a_sentence(given: Named, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        SeeingTeacher(given, STUDENT, "abcd")
    assert str(caught.value) == sentence


def test_classes_are_matched_by_their_names() -> None:
    assert match("ab", 2, "ab").kind == "same"
    assert match("ab", 2, None).kind == "assumed"
    found = match("abc", 3, "cab")
    assert (found.kind, found.places) == ("permuted", (1, 2, 0))
    found = match(["Great_White", "house-cat", "new"], 4, ["other", "house cat", "great white", "more"])
    assert (found.kind, found.places, found.missing) == ("shared", (2, 1, None), ("new",))
    assert found.unused == ("other", "more")


def test_folders_of_imagenet_match_words_and_an_ambiguous_word_matches_nothing() -> None:
    pytest.importorskip("timm")
    found = match(["n01440764", "n01443537", "n02012849"], 4, ["goldfish", "crane", "crane", "tench"])
    assert found.places == (3, 0, None)
    assert match(["tench", "goldfish"], 2, ["n01443537", "n01440764"]).places == (1, 0)
