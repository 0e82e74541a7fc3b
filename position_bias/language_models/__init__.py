"""Language models: their layout, the text they read, training small ones offline, and what is measured of them."""
