"""Where the files of this folder are put."""

from __future__ import annotations

from pathlib import Path

POLICY = Path(__file__).with_name("org.goex.policy")
POLICY_PLACE = Path("/usr/share/polkit-1/actions/org.goex.policy")
