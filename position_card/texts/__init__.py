"""Texts that prompts are cut from."""
