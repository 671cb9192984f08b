"""Let days and weeks pass while an application runs, idles or is stopped."""
