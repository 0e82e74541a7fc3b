"""Opening a decoder: its files, the hub, packages, GGUF, its tokenizer, families with ALiBi."""
