"""Plugs a security key in that is made of software, where GOEX_TEST_USB_KEY names its file."""

import os

if os.environ.get("GOEX_TEST_USB_KEY"):
    from device import plug_in

    plug_in(os.environ["GOEX_TEST_USB_KEY"])
