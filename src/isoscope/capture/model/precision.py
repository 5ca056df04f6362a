"""Where a model computes and with which numbers: names checked before anything is loaded."""

import torch

from isoscope.errors import IsoscopeError

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def dtype_named(name: str | None) -> torch.dtype:
    """Return the dtype of a name; without one float32, whatever the file stores.

    Readings of one model are then the same numbers whatever its file stores.
    """
    if name is None:
        return torch.float32
    if name not in DTYPES:
        raise IsoscopeError(
            f"expected a dtype of {', '.join(DTYPES)}, got {name!r}",
            hint="leave it out for float32",
            slug="dtype-unknown",
        )
    return DTYPES[name]


def device_named(name: str) -> torch.device:
    """Return the device of a name, if this machine has it."""
    try:
        device = torch.device(name)
        if device.type == "meta":
            raise RuntimeError("a device without memory")
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise IsoscopeError(
            f"expected a device of this machine, got {name!r}",
            hint=f"take one of {', '.join(devices())}",
            slug="device-unknown",
        ) from error
    return device


def devices() -> list[str]:
    """Return the names of the devices torch can use here."""
    found = ["cpu"]
    found += [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    return found + (["mps"] if torch.backends.mps.is_available() else [])
