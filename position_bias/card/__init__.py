"""The position card of a decoder: lambda, influence and what rollouts predict, in one figure and in words."""
