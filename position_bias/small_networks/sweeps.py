"""Sweeps choose settings, on seeds apart from those that figures and tables are reported for."""

SWEPT_FROM = 1000  # first seed of sweeps; those of figures and tables are smaller


def seeds_of_sweep(count: int) -> range:
    """Return the seeds of a sweep."""
    return range(SWEPT_FROM, SWEPT_FROM + count)
