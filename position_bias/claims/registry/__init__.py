"""What the papers claim, one module a paper, one entry a claim.

Entries say where a verdict comes from and never what it is. Statements are in our words.
"""

from position_bias.claims.registry import emergence, layernorm, postnorm, structural

CLAIMS = (*structural.CLAIMS, *emergence.CLAIMS, *layernorm.CLAIMS, *postnorm.CLAIMS)
TABLES = tuple(dict.fromkeys(claim.table for claim in CLAIMS))
