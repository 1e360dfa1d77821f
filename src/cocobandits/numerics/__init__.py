"""Numerical building blocks without statistics of their own: intervals, orthants, quadrature."""
