"""The operator console in a real browser, driven as a person would drive it."""

import shutil
import tempfile

import pytest

webdriver = pytest.importorskip("selenium.webdriver", reason="install python3-selenium")

from selenium.common.exceptions import StaleElementReferenceException  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402

from .wait import until  # noqa: E402

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--force-color-profile=srgb", "--lang=en-GB")
WIDE, NARROW = (1440, 900), (360, 740)

# By its label, as a person finds it.
BUTTON = ("//*[self::button or self::a or self::summary or self::input[@type='checkbox']]"
          "[normalize-space()='{0}' or @aria-label='{0}']")
LABELLED = "//*[@id=//label[normalize-space()='{0}']/@for]"


class Browser:
    """One Chromium with a profile of its own."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="postrider-browser-", dir="/tmp")
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for flag in (*FLAGS, f"--user-data-dir={self.profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service(DRIVER), options=options)

    def close(self):
        self.driver.quit()
        shutil.rmtree(self.profile, ignore_errors=True)


class Console:
    """The console of one ingest, in a tab that forgets what was before."""

    def __init__(self, driver, port):
        self.driver = driver
        self.origin = f"http://127.0.0.1:{port}"
        self.size(*WIDE)
        self.driver.get(f"{self.origin}/console/")
        self.driver.execute_script("sessionStorage.clear()")
        self.driver.get("about:blank")
        self.complaints()  # those of the test before are not ours

    def size(self, width, height):
        """The size of the page itself, whatever the window needs."""
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def open(self, fragment="#/"):
        """As a link does that somebody sent: in a fresh page."""
        self.driver.get("about:blank")
        self.driver.get(f"{self.origin}/console/{fragment}")

    def sign_in(self, key, fragment="#/"):
        self.open(fragment)
        self.fill("API key", key)
        self.press("Enter")
        until(lambda: not self.find_all("#key"), "the key is taken")

    def go(self, fragment):
        self.driver.execute_script("location.hash = arguments[0]", fragment)

    # -- what is seen --

    def text(self, selector="#view"):
        try:
            return self.driver.execute_script(
                "return document.querySelector(arguments[0])?.innerText ?? ''", selector)
        except StaleElementReferenceException:
            return ""

    def sees(self, *texts, selector="body", seconds=10):
        for text in texts:
            try:
                until(lambda text=text: text in self.text(selector), f"{text!r} is shown", seconds)
            except AssertionError as missing:
                raise AssertionError(f"{missing}; there is {self.text(selector)!r}") from None

    def misses(self, text, selector="body"):
        until(lambda: text not in self.text(selector), f"{text!r} is not shown")

    def find_all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def _visible(self, xpath):
        return [each for each in self.driver.find_elements(By.XPATH, xpath)
                if each.is_displayed()]

    # -- what a person does --

    def _retry(self, act, sentence):
        """A live view may replace what was found just before it is used."""
        def attempt():
            try:
                return act() or None
            except StaleElementReferenceException:
                return None
        return until(attempt, sentence)

    def press(self, name):
        def act():
            found = self._visible(BUTTON.format(name))
            # What a dialog has lies above all else, and comes last.
            return bool(found) and (found[-1].click() or True)
        self._retry(act, f"{name!r} can be pressed")

    def fill(self, label, text):
        def act():
            found = self._visible(LABELLED.format(label))
            if not found:
                return False
            found[-1].clear()
            found[-1].send_keys(text)
            return True
        self._retry(act, f"{label!r} can be filled")

    def choose(self, label, option):
        def act():
            found = self._visible(LABELLED.format(label) + f"/option[normalize-space()='{option}']")
            return bool(found) and (found[-1].click() or True)
        self._retry(act, f"{option!r} of {label!r} can be chosen")

    # -- what the browser says --

    def complaints(self):
        """What it logged since it was asked last: errors of ours, and the policy's."""
        return [entry["message"] for entry in self.driver.get_log("browser")
                if entry["level"] in ("SEVERE", "WARNING")]

    def loaded(self):
        """Every address that this page loaded, with its size."""
        return self.driver.execute_script(
            "return [performance.getEntriesByType('navigation')[0],"
            " ...performance.getEntriesByType('resource')]"
            ".map((each) => [each.name, each.encodedBodySize])")

    def picture(self, path):
        """Of all of the page, however long."""
        height = self.driver.execute_script("return document.documentElement.scrollHeight")
        width = self.driver.execute_script("return innerWidth")
        self.size(width, min(max(height, 400), 6000))
        self.driver.save_screenshot(str(path))


@pytest.fixture(scope="module")
def browser():
    if not CHROMIUM or not DRIVER:
        pytest.skip("install chromium and chromium-driver")
    made = Browser()
    yield made
    made.close()


@pytest.fixture
def console(browser, ingest):
    return Console(browser.driver, ingest.port)
