"""Constants of robust statistics."""

MAD_FACTOR = 1.4826  # The median distance from the median, times this, is sigma where the law is normal
