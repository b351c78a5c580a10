"""`python -m ckptcost`."""

from ckptcost.cli.main import main

raise SystemExit(main())
