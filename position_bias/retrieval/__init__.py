"""Does the structural prior tell which label a retrieval network copies? A wing that we add, of no paper."""
