"""Constants of robust statistics."""

# Cut of the biweight for 95 % efficiency at the normal (Beaton & Tukey, Technometrics 16 (1974) 147)
TUKEY_LIMIT = 4.685
MAD_FACTOR = 1.4826  # The median distance from the median, times this, is sigma where the law is normal
