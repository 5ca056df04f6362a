"""The errors of Ray that the package knows."""

class RayError(Exception): ...

class RayTaskError(RayError):
    cause: BaseException | None

class ActorDiedError(RayError): ...
