"""Many small networks trained at once: the stack, its decoder, its norms and averages of weights."""
