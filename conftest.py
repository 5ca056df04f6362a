"""How hard hypothesis tries: 50 examples in `make test`, 1,000 in `make laws`."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "default",
    max_examples=50,
    deadline=None,  # two workers share two cores, so a slow example proves nothing
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("laws", parent=settings.get_profile("default"), max_examples=1000)
settings.load_profile("default")
