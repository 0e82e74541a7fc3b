"""Texts that prompts are cut from, records that are asked as they are, and the chat templates that write them."""
