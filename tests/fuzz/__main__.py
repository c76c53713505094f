"""Command: attack until the time is over; exit code 1 with seed and number of the first case that breaks."""

import argparse
import random
import sys

from tests.fuzz.attack import attack, attack_for, prepared
from tests.fuzz.targets import TARGETS

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--target", choices=TARGETS, action="append")
    parser.add_argument("--case", type=int, help="this case alone, of one target")
    chosen = parser.parse_args()
    targets = chosen.target or list(TARGETS)
    print(f"seed {chosen.seed}", flush=True)
    with prepared() as attacked:
        if chosen.case is not None:
            print(attack(attacked, targets[0], chosen.seed, chosen.case))
            sys.exit()
        ends = attack_for(attacked, targets, chosen.seed, 60 * chosen.minutes)
    for end, times in sorted(ends.items()):
        print(f"{times:8d}  {end}")
