"""What interrupts a training or a measurement in tests."""


class Interruption(BaseException):
    """Like a kill: no handler catches it."""
