"""The inside of a decoder: its layout, proved by reproduction; residual stream, attention, rotation."""
