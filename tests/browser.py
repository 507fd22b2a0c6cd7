"""Chromium, told what to do through a pair of pipes: a page is opened at a width, in the light or in the dark."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WARNINGS = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
# The browser reads orders from descriptor 3 and answers on 4.
START = "import os, sys; i, o, *c = sys.argv[1:]; os.dup2(int(i), 3); os.dup2(int(o), 4); os.execv(c[0], c)"


class Browser:
    def __enter__(self):
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
        flags = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe")
        start = (sys.executable, "-c", START, str(theirs_in), str(theirs_out), PROGRAM)
        self._process = subprocess.Popen(
            [*start, *flags, f"--user-data-dir={self._profile.name}", "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._orders, self._answers = os.fdopen(ours_out, "wb", 0), os.fdopen(ours_in, "rb")
        self._number, self._session, self.events = 0, {}, []
        page = next(t for t in self.tell("Target.getTargets")["targetInfos"] if t["type"] == "page")
        attached = self.tell("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = {"sessionId": attached["sessionId"]}
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.tell(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        self._orders.close()
        self._answers.close()
        self._process.terminate()
        self._process.wait()
        self._profile.cleanup()

    def tell(self, method, **parameters):
        self._number += 1
        order = {"id": self._number, "method": method, "params": parameters, **self._session}
        self._orders.write(json.dumps(order).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            self.events.append(answer)
        return answer["result"]

    def open(self, path, *, width, dark=False):
        """Load a file, and remember what the browser said about it."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.tell("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.tell("Emulation.setEmulatedMedia", features=[scheme])
        self.events = []
        self.tell("Page.navigate", url=path.resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def value(self, expression):
        return self.tell("Runtime.evaluate", expression=expression, returnByValue=True)["result"]["value"]

    @property
    def complaints(self):
        return [event for event in self.events if event.get("method") in WARNINGS]

    @property
    def requests(self):
        sent = (event for event in self.events if event.get("method") == "Network.requestWillBeSent")
        return [event["params"]["request"]["url"] for event in sent]

    def _next(self):
        letters = bytearray()
        while (letter := self._answers.read(1)) != b"\0":
            if not letter:
                raise EOFError("the browser has gone")
            letters += letter
        return json.loads(letters)
