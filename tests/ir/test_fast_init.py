"""Frozen dataclasses with ``fast_init`` behave like frozen dataclasses."""

import inspect
import pickle
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from spillprof.ir.fast_init import fast_init


@fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Crate:
    """A value with a field of each sort."""

    name: str
    weight_kg: float = 1.5
    labels: Mapping[str, int] = field(default_factory=dict)


def test_fields_defaults_and_factories_are_those_of_the_dataclass():
    crate = Crate(name="tea")
    assert (crate.name, crate.weight_kg, crate.labels) == ("tea", 1.5, {})
    assert Crate(name="tea").labels is not crate.labels
    assert Crate(name="tea", weight_kg=2.0, labels={"x": 1}) == replace(crate, weight_kg=2.0, labels={"x": 1})
    assert repr(crate) == "Crate(name='tea', weight_kg=1.5, labels={})"


def test_nothing_can_be_changed_afterwards():
    crate = Crate(name="tea")
    assert type(crate) is Crate
    with pytest.raises(FrozenInstanceError):
        crate.name = "salt"
    with pytest.raises(FrozenInstanceError):
        del crate.name


def test_signature_asks_for_what_has_no_default():
    assert list(inspect.signature(Crate).parameters) == ["name", "weight_kg", "labels"]
    with pytest.raises(TypeError, match="name"):
        Crate()
    with pytest.raises(TypeError, match="colour"):
        Crate(name="tea", colour="red")


def test_copies_through_pickle_are_equal():
    crate = Crate(name="tea", labels={"x": 1})
    assert pickle.loads(pickle.dumps(crate)) == crate


def test_class_that_checks_its_fields_is_refused():
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Checked:
        """It would not be checked."""

        name: str

        def __post_init__(self) -> None:
            raise ValueError(self.name)

    with pytest.raises(TypeError, match="Checked"):
        fast_init(Checked)
