"""What a firmware build freezes: our package, and three parts of micropython-lib.

``make -C ports/esp32 BOARD=ESP32_GENERIC FROZEN_MANIFEST=.../firmware_bridge/manifest.py``. Frozen
code runs from flash: none of it takes heap.
"""

include("$(PORT_DIR)/boards/manifest.py")  # type: ignore[name-defined]  # noqa: F821 - the build's own words
require("aioble")  # type: ignore[name-defined]  # noqa: F821
require("ntptime")  # type: ignore[name-defined]  # noqa: F821
require("logging")  # type: ignore[name-defined]  # noqa: F821
package("firmware_bridge", base_path="..")  # type: ignore[name-defined]  # noqa: F821
