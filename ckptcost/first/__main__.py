"""`python -m ckptcost`."""

from ckptcost.first.cli.main import main

raise SystemExit(main())
