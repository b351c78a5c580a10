"""`python -m ckptcost.first`: the first edition by its own verbs, for what has no new form yet."""

from ckptcost.first.cli.main import main

raise SystemExit(main())
