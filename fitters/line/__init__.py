"""Line through declared values, and deviations from it."""
