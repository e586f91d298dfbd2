from __future__ import annotations

import math
import random


class InsecureTestCoins:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def below(self, n):
        return self.r.randrange(n)

    def bernoulli_exp(self, g):
        return self.r.random() < math.exp(-g)

    def geometric(self, scale):
        return int(-float(scale) * math.log(1 - self.r.random()))
