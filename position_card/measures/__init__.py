"""What is measured of a decoder: lambda, influence, attention, replacement, recall and answers; and what it costs."""
