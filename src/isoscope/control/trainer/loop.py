"""A penalty in a plain loop: hidden states are heard as the model runs, and handed over."""

import inspect
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Self, cast

import torch
from torch import Tensor, nn

from isoscope.capture.stacks import candidates
from isoscope.capture.tap import first_tensor
from isoscope.control.penalty.base import Penalty, recomputing
from isoscope.control.penalty.hidden import chosen_layers
from isoscope.control.trainer.forward import told
from isoscope.errors import ConfigError, PenaltyError


class Mark:
    """Whether gradients have come back to a pass: its step is over then."""

    def __init__(self, layers: Sequence[Tensor]) -> None:
        self.spent = False
        for layer in layers:
            if layer.requires_grad:
                layer.register_hook(self)

    def __call__(self, _gradient: Tensor) -> None:
        """Note that gradients are there; they are left as they are."""
        self.spent = True


@dataclass(frozen=True)
class Heard:
    """The layers of one forward pass, and which of their tokens are real."""

    layers: list[Tensor]  # (batch, time, d) each
    mask: Any  # (batch, time), or None


class Hearing:
    """Hears a model's hidden states inside a `with` block, and gives the penalty on them.

    A model of transformers is asked for its hidden states while the block lasts; of any
    other module, name the ones to listen to. Only passes that train are heard. Several
    passes before a call, as of anchors and positives, are one cloud. Passes of a step that
    ended without a call are dropped when the next one begins.
    """

    def __init__(
        self, model: nn.Module, penalty: Penalty, modules: Sequence[str] | None = None
    ) -> None:
        one_copy(model)
        self.penalty = penalty
        self.names = tuple(modules or ())
        self.body = model if modules else transformer_in(model)
        if modules:
            _there(model, self.names)
        self._passes: list[Heard] = []
        self._marks: list[Mark] = []
        self._calls: dict[str, list[Tensor]] = {name: [] for name in self.names}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        if self.names:
            for name in self.names:
                module = self.body.get_submodule(name)
                handle = module.register_forward_hook(self._module_hook(name))
                self._stack.callback(handle.remove)
            return self
        # An argument and no setting of the config: peft passes None, which the config yields
        # to, and a model saved in the block would keep the setting.
        told_of = told(self.body, after=self._model_hook, asked={"output_hidden_states": True})
        self._stack.enter_context(told_of)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self.forget()

    def __call__(self, mask: Any = None, *, documents: Any = None) -> Tensor:
        """Return the penalty on what was heard since the last call, and forget it.

        The mask is that of the model's own call unless another is given.
        """
        passes = self._heard()
        self.forget()
        if not passes:
            raise PenaltyError(
                "expected a training pass of the model before its penalty, got none",
                hint="call the model first, in training mode and with gradients; a loss that "
                "runs it again in its backward pass (cached, GradCache) cannot be penalised",
                slug="nothing-heard",
            )
        if len(passes) == 1:
            only = passes[0]
            chosen = only.mask if mask is None else mask
            return self.penalty(only.layers, chosen, documents=documents)
        layers, numbers = _joined(passes)
        return self.penalty(layers, documents=numbers if documents is None else documents)

    def forget(self) -> None:
        """Drop what was heard, as for a step whose loss is thrown away."""
        self._passes.clear()
        self._marks.clear()
        for each in self._calls.values():
            each.clear()

    def _heard(self) -> list[Heard]:
        if not self.names:
            return list(self._passes)
        counts = {len(each) for each in self._calls.values()}
        if len(counts) > 1:
            raise PenaltyError(
                "expected modules that run equally often, got "
                + ", ".join(f"{name}: {len(each)}" for name, each in self._calls.items()),
                hint="name modules that run once in each pass",
                slug="nothing-heard",
            )
        return [
            Heard([self._calls[name][number] for name in self.names], None)
            for number in range(counts.pop())
        ]

    def _model_hook(
        self, module: nn.Module, given: tuple[Any, ...], named: dict[str, Any], output: Any
    ) -> None:
        if trains(module):
            mask = argument(module, given, named, "attention_mask")
            layers = chosen_layers(output, "all")
            self._begin(layers)
            self._passes.append(Heard(layers, _flat(mask)))

    @cast(Any, torch.compiler.disable)  # its type forgets what a method takes
    def _begin(self, layers: Sequence[Tensor]) -> None:
        """Drop passes of a step that is over, and look out for the end of this one."""
        if any(mark.spent for mark in self._marks):
            self.forget()
        self._marks.append(Mark(layers))

    def _module_hook(self, name: str) -> Any:
        def hook(module: nn.Module, _given: Any, output: Any) -> None:
            tensor = first_tensor(output)
            if trains(module) and tensor is not None:
                self._begin([tensor])
                self._calls[name].append(tensor)

        return hook


def penalised(
    model: nn.Module, penalty: Penalty, modules: Sequence[str] | None = None
) -> Hearing:
    """Return a block in which a plain loop can add a penalty to its loss.

    >>> import torch
    >>> from isoscope.control import IStar
    >>> model = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> net = torch.nn.Sequential(model)
    >>> with penalised(net, IStar(weight=1.0), modules=["0"]) as penalty:
    ...     hidden = net(torch.randn(4, 5, 8, generator=torch.manual_seed(0)))
    ...     loss = hidden.square().mean() + penalty()
    >>> loss.backward()
    """
    return Hearing(model, penalty, modules)


def trains(module: nn.Module) -> bool:
    """Whether a pass is one of training, and not made again in a backward pass."""
    return module.training and torch.is_grad_enabled() and not recomputing()


def transformer_in(model: nn.Module) -> nn.Module:
    """Return the part of a model that runs the layers and can return them, wrapped or not."""
    for module in model.modules():
        if _of_transformers(module):
            return _innermost(getattr(module, str(module.base_model_prefix), module))
    raise ConfigError(
        f"expected a model of transformers in {type(model).__name__}, got none",
        hint="name the modules whose outputs are penalised: modules=['layers.0', 'layers.1']",
        slug="no-transformer",
    )


def _of_transformers(module: nn.Module) -> bool:
    return hasattr(module, "base_model_prefix") and hasattr(module, "config")


def _innermost(body: nn.Module) -> nn.Module:
    """Return what runs the blocks: a head may pass the body by, as OPT's calls its decoder."""
    inner = {name: each for name, each in body.named_children() if _of_transformers(each)}
    if {"encoder", "decoder"} <= set(inner):
        raise ConfigError(
            f"expected a model with one stack of layers, got the encoder and the decoder of "
            f"{type(body).__name__}",
            hint="choose one in a loop or compute_loss of your own: "
            "penalised(model.get_encoder(), penalty), watch.begin(model.get_encoder(), step)",
            slug="two-stacks",
        )
    if len(inner) != 1:
        return body
    ((name, only),) = inner.items()
    blocks = candidates(body)
    inside = bool(blocks) and all(each.startswith(f"{name}.") for each in blocks)
    return _innermost(only) if inside else body


def one_copy(model: nn.Module) -> None:
    """Refuse a model that is copied to several devices in every pass."""
    if any(isinstance(module, nn.DataParallel) for module in model.modules()):
        raise ConfigError(
            "expected a model that runs on one device of each process, got nn.DataParallel",
            hint="start one process a device: torchrun --nproc-per-node=N train.py; or show "
            "one device alone: CUDA_VISIBLE_DEVICES=0",
            slug="data-parallel",
        )


def argument(
    module: nn.Module, given: tuple[Any, ...], named: dict[str, Any], name: str
) -> Any:
    """Return what a module was called with under a name, however it was given."""
    if name in named or not given:
        return named.get(name)
    try:
        bound = inspect.signature(module.forward).bind_partial(*given, **named)
    except TypeError:  # a wrapper whose signature says nothing
        return None
    return bound.arguments.get(name)


def _flat(mask: Any) -> Any:
    """Return a mask of tokens; one for pairs of tokens says nothing about padding."""
    return mask if isinstance(mask, Tensor) and mask.ndim == 2 else None


def _joined(passes: Sequence[Heard]) -> tuple[list[Tensor], Tensor]:
    """Return the real rows of all passes, layer by layer, and the sequence each is of."""
    numbers: list[Tensor] = []
    rows: list[list[Tensor]] = [[] for _ in passes[0].layers]
    start = 0
    for each in passes:
        first = each.layers[0]
        real = torch.ones(first.shape[:2], dtype=torch.bool, device=first.device)
        if each.mask is not None:
            real = each.mask.to(first.device).bool()
        places = torch.arange(start, start + len(first), device=first.device)
        numbers.append(places[:, None].expand(real.shape)[real])
        for kept, layer in zip(rows, each.layers, strict=True):
            kept.append(layer[real.to(layer.device)])
        start += len(first)
    return [torch.cat(kept) for kept in rows], torch.cat(numbers)


def _there(model: nn.Module, names: Sequence[str]) -> None:
    from isoscope.registry import unknown

    known = dict(model.named_modules())
    for name in names:
        if name not in known:
            raise unknown("module", name, [each for each in known if each])
