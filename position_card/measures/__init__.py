"""What is measured of a decoder: lambda, influence, attention, replacement, recall, spans; and what it costs."""
