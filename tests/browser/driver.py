"""A browser for tests: opens a page and tells what went wrong, what it asked the network for, and what axe finds."""

from __future__ import annotations

import json
import os
import shutil
from importlib.util import find_spec
from pathlib import Path

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--window-size=1200,1400",
    "--force-color-profile=srgb",
]
ALONE = ("file:", "data:", "blob:")
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
AXE = """
const done = arguments[arguments.length - 1];
axe.run({resultTypes: ['violations']}).then(
  found => done(found.violations.map(v => [v.impact, v.id, v.nodes.map(n => n.html + ' ' + n.failureSummary)])),
  problem => done([['critical', String(problem), []]]));
"""
PLACE = """
const now = document.activeElement, style = getComputedStyle(now);
return [now.getAttribute('role') || now.type || now.localName, now.getAttribute('aria-label') || now.textContent,
        style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0];
"""


def find_missing() -> str:
    """What is not here of all that is needed, and how to get it; nothing if all is."""
    if not any(map(shutil.which, NAMES)) or not shutil.which("chromedriver"):
        return "no browser: apt-get install chromium chromium-driver"
    if not find_spec("selenium") or not find_spec("axe_core_python"):
        return "no selenium or no axe: pip install selenium axe-core-python"
    return ""


class Browser:
    """One Chromium for all tests of a session; each `open` begins anew."""

    def __init__(self, folder: Path) -> None:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        os.environ.update(SE_OFFLINE="true", SE_AVOID_STATS="true")  # selenium itself looks for nothing
        options = webdriver.ChromeOptions()
        options.binary_location = next(filter(None, map(shutil.which, NAMES)))
        for flag in [*FLAGS, f"--user-data-dir={folder / 'profile'}"]:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.driver.set_script_timeout(60)
        self.folder = folder
        self.axe_script = Path(find_spec("axe_core_python").origin).with_name("axe.min.js").read_text(encoding="utf-8")

    def open(self, page: str | Path, *, dark: bool = False, width: int = 1200) -> Browser:
        """A file, or a page as text."""
        if isinstance(page, str):
            (self.folder / "page.html").write_text(page, encoding="utf-8")
            page = self.folder / "page.html"
        self.driver.get("about:blank")
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        self.driver.set_window_size(width, 1400)
        self.errors(), self.requests()
        self.driver.get(page.resolve().as_uri())
        return self

    def run(self, script: str, *values):
        """What a script in the page returns."""
        return self.driver.execute_script(script, *values)

    def wait(self, condition: str, seconds: float = 20.0):
        """Until an expression is true in the page; its value."""
        from selenium.webdriver.support.ui import WebDriverWait

        said = f"never in {seconds} s: {condition}"
        return WebDriverWait(self.driver, seconds, 0.02).until(lambda _: self.run(f"return {condition}"), said)

    def press(self, *keys: str) -> None:
        """Keys by name, one after the other: "TAB", "ARROW_DOWN", or letters."""
        from selenium.webdriver import ActionChains, Keys

        for key in keys:
            ActionChains(self.driver, duration=0).send_keys(getattr(Keys, key, key)).perform()

    def focused(self) -> tuple[str, str, bool]:
        """What has the focus: its role, its name, and whether one can see that."""
        return tuple(self.run(PLACE))

    def errors(self) -> list[str]:
        """What the console said since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def requests(self) -> list[str]:
        """What was asked for outside of the page since the last call."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
        return [url for url in asked if not url.startswith((*ALONE, "about:"))]

    def serious(self) -> list[str]:
        """What axe calls serious or critical."""
        self.run(self.axe_script)
        found = self.driver.execute_async_script(AXE)
        return [f"{rule}: {where}" for impact, rule, where in found if impact in ("serious", "critical")]

    def check(self) -> None:
        """What every page must have: a name, a language, one title, nothing that is asked for, nothing that goes wrong,
        nothing that shuts people out, and no sideways scrolling of the whole."""
        assert self.requests() == []
        assert self.errors() == []
        assert self.serious() == []
        assert self.run("return [document.title !== '', document.documentElement.lang]") == [True, "en"]
        assert self.run("return document.querySelectorAll('h1').length") == 1
        across = self.run("return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert across[0] <= across[1], f"the page is {across[0]} wide on a screen of {across[1]}"

    def close(self) -> None:
        self.driver.quit()
