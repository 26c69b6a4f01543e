"""`python -m deltastar`."""

import sys

from deltastar.cli import main

sys.exit(main())
