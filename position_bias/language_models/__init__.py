"""Language models of the ALiBi families: their layout, the text they read, and training small ones offline."""
