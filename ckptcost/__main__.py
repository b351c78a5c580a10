"""`python -m ckptcost`."""

from ckptcost.cli import main

raise SystemExit(main())
