"""`python -m fluxforge` is `fluxforge`."""

from fluxforge.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
