"""The kernel: numbers in flat arrays, compiled by numba. Nothing outside this package imports numba."""
