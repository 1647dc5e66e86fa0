#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages of `hone inspect --html`, `hone compare --html` and `hone quantize --report`, in a browser:

    html.py HONE MODEL [--shots FOLDER]

Loads the page in headless Chromium, over the debugging pipe, so that nothing but Python and the browser
is needed. Checks that no error and no request leaves the page, that every node is drawn and no two
overlap, that search finds a node, that a click shows its details, that the other graphs can be drawn,
light and dark, and narrow screens. Exits 77 where there is no Chromium. --shots saves pictures to look
at."""

import base64, json, os, shutil, subprocess, sys, tempfile, time

BROWSERS = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"]
SECONDS = 60


class Browser:
    def __init__(self, path, folder):
        to_r, to_w = os.pipe()
        from_r, from_w = os.pipe()

        def place():  # the browser reads from 3 and writes to 4
            a, b = os.dup(to_r), os.dup(from_w)
            os.dup2(a, 3)
            os.dup2(b, 4)

        args = [path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--remote-debugging-pipe",
                "--user-data-dir=" + folder, "--window-size=1500,950", "--hide-scrollbars", "--no-first-run",
                "--disable-background-networking"]
        self.process = subprocess.Popen(args, preexec_fn=place, close_fds=False, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(to_r), os.close(from_w)
        self.to, self.from_, self.rest, self.number, self.events = to_w, from_r, b"", 0, []
        self.session = None

    def message(self):
        while b"\0" not in self.rest:
            part = os.read(self.from_, 1 << 20)
            if not part:
                raise SystemExit("the browser ended")
            self.rest += part
        one, self.rest = self.rest.split(b"\0", 1)
        return json.loads(one)

    def call(self, method, **params):
        self.number += 1
        m = {"id": self.number, "method": method, "params": params}
        if self.session:
            m["sessionId"] = self.session
        os.write(self.to, json.dumps(m).encode() + b"\0")
        while True:
            got = self.message()
            if got.get("id") == self.number:
                if "error" in got:
                    raise SystemExit(f"{method}: {got['error']}")
                return got["result"]
            self.events.append(got)

    def open(self, url):
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log", "Network"]:
            self.call(domain + ".enable")
        self.call("Page.navigate", url=url)
        self.ready()

    def ready(self):
        end = time.time() + SECONDS
        while self.js(
            "document.readyState === 'complete' && typeof shown === 'object' && shown !== null") is not True:
            if time.time() > end:
                raise SystemExit("the page was not drawn in time")
            time.sleep(0.1)

    def js(self, text):
        r = self.call("Runtime.evaluate", expression=text, returnByValue=True)
        if "exceptionDetails" in r:
            return "exception: " + str(r["exceptionDetails"].get("exception", {}).get("description"))
        return r["result"].get("value")

    def click(self, x, y):
        for kind in ["mousePressed", "mouseReleased"]:
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def shot(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))

    def end(self):
        self.process.terminate()
        self.process.wait()


OVERLAPS = """(() => {
    const rows = new Map();
    for (const b of shown.boxes) { if (!rows.has(b.layer)) rows.set(b.layer, []); rows.get(b.layer).push(b); }
    let n = 0;
    for (const row of rows.values()) {
        row.sort((p, q) => p.x - q.x);
        for (let k = 1; k < row.length; k++)
            n += row[k].x - row[k].w / 2 < row[k - 1].x + row[k - 1].w / 2 - 0.5;
    }
    return n;
})()"""
failed = []


def want(what, got, good):
    if not good:
        failed.append(f"{what}: {got!r}")


def quiet(browser):
    """No error, and no request that leaves the page."""
    for e in browser.events:
        if e["method"] == "Runtime.exceptionThrown" or (e["method"] == "Log.entryAdded"
            and e["params"]["entry"]["level"] == "error"):
            failed.append("console: " + json.dumps(e["params"])[:300])
        if e["method"] == "Runtime.consoleAPICalled" and e["params"]["type"] == "error":
            failed.append("console: " + json.dumps(e["params"])[:300])
        if e["method"] == "Network.requestWillBeSent" and not e["params"]["request"]["url"].startswith(
            ("file:", "about:", "data:")):
            failed.append("a request left the page: " + e["params"]["request"]["url"])
    browser.events.clear()


def look(browser, url, shots, name):
    browser.open(url)
    nodes = browser.js("shown.nodes.length")
    drawn = browser.js("document.querySelectorAll('.node').length")
    want("boxes drawn", drawn, drawn == nodes + browser.js("shown.inputs.length + shown.outputs.length"))
    want("boxes that overlap", browser.js(OVERLAPS), browser.js(OVERLAPS) == 0)
    want("places that are no numbers",
         browser.js("shown.boxes.filter(b => !isFinite(b.x) || !isFinite(b.y)).length"), browser.js(
        "shown.boxes.filter(b => !isFinite(b.x) || !isFinite(b.y)).length") == 0)
    want("overview", browser.js("document.getElementById('panel').innerText")[:80],
         "nodes" in browser.js("document.getElementById('panel').innerText"))
    if shots:
        browser.shot(f"{shots}/{name}-light.png")
    # search by an op of the model, by keyboard
    op = browser.js("fusedName(shown.nodes[Math.floor(shown.nodes.length / 2)])")
    browser.js("document.getElementById('search').focus()")
    browser.call("Input.insertText", text=op)
    hits = browser.js("hits.length")
    want(f"search for '{op}'", hits, isinstance(hits, int) and 0 < hits <= nodes + 100)
    browser.js(
        "document.getElementById('search').dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'}))")
    text = browser.js("document.getElementById('panel').innerText")
    want("details after search", text[:80], op in text and "INPUTS" in text.upper())
    browser.js("document.getElementById('found').style.display = 'none'")
    if shots:
        browser.shot(f"{shots}/{name}-search.png")
    # a click on the node in the middle of the screen
    browser.js(
        "document.getElementById('search').value = ''; find(''); choose(-1, false); goTo(shown.of.get(0))")
    r = json.loads(browser.js("JSON.stringify(shown.boxes[shown.of.get(0)].e.getBoundingClientRect())"))
    browser.click(r["x"] + r["width"] / 2, r["y"] + r["height"] / 2)
    text = browser.js("document.getElementById('panel').innerText")
    want("details after a click", text[:80], "node #0" in text and "OUTPUTS" in text.upper()
         and "PROGRAM" in text.upper())
    browser.js(
        "document.getElementById('theme').click(); document.documentElement.dataset.theme === 'dark' || "
        "document.getElementById('theme').click()")
    want("dark", browser.js("document.documentElement.dataset.theme"),
         browser.js("document.documentElement.dataset.theme") == "dark")
    if shots:
        browser.shot(f"{shots}/{name}-dark.png")
    browser.js("whole(true)")
    if shots:
        browser.shot(f"{shots}/{name}-whole.png")
    # every other graph: before the passes, bodies
    for k in range(min(browser.js("graphs.length"), 12)):
        got = browser.js(f"draw(graphs[{k}]), shown.boxes.length")
        want(f"graph {k}", got, isinstance(got, int))
        want(f"overlaps in graph {k}", browser.js(OVERLAPS), browser.js(OVERLAPS) == 0)
    if shots and browser.js("graphs.length") > 1:
        browser.shot(f"{shots}/{name}-last.png")
    quiet(browser)
    return nodes


def narrow(browser, url, shots):
    """On a telephone: nothing sticks out, the legend is a word until it is wanted, and search works."""
    for wide, high in [(360, 640), (640, 360), (900, 700)]:
        browser.open(url)
        browser.call("Emulation.setDeviceMetricsOverride", width=wide, height=high, deviceScaleFactor=1,
                     mobile=True)
        browser.call("Page.reload")
        browser.ready()
        place = lambda e: json.loads(browser.js(
            f"JSON.stringify(document.querySelector('{e}').getBoundingClientRect())"))
        want(f"{wide}x{high}: width of the page", browser.js("document.documentElement.scrollWidth"),
             browser.js("document.documentElement.scrollWidth") == wide)
        stage, legend = place("#stage"), place("#legend")
        want(f"{wide}x{high}: legend", legend, legend["height"] < 40 and legend["width"] < 120
             and legend["bottom"] <= stage["bottom"])
        r = place("#legend summary")
        browser.click(r["x"] + 20, r["y"] + r["height"] / 2)
        legend = place("#legend")
        want(f"{wide}x{high}: legend, opened", legend, legend["height"] > 40 and legend["right"] <= wide
             and legend["top"] >= stage["top"])
        browser.click(r["x"] + 20, place("#legend summary")["y"] + r["height"] / 2)
        browser.js("document.getElementById('search').focus()")
        browser.call("Input.insertText", text=browser.js("fusedName(shown.nodes[0])"))
        found = place("#found")
        want(f"{wide}x{high}: what search found", found, found["width"] > 100 and found["left"] >= 0
             and found["right"] <= wide and found["top"] >= place("#search")["bottom"])
        if shots:
            browser.shot(f"{shots}/narrow-{wide}.png")
    browser.call("Emulation.clearDeviceMetricsOverride")
    quiet(browser)


def hostile(browser, hone, model, folder):
    """A node's name that would end the script and begin a tag, of the same length as the one in the
    digits model."""
    with open(model, "rb") as f:
        data = f.read()
    name = b"node_softmax"
    if name not in data:
        return
    bad = os.path.join(folder, "bad.onnx")
    with open(bad, "wb") as f:
        f.write(data.replace(name, b"</script><b>"))
    write(hone, bad, bad + ".html")
    browser.open("file://" + bad + ".html")
    browser.js("choose(shown.of.get(shown.nodes.length - 1), true)")
    got = browser.js("document.querySelector('#panel .sub').textContent")
    want("a name with a tag in it", got, isinstance(got, str) and "</script><b>" in got
         and browser.js("document.querySelectorAll('#panel .sub b').length") == 0)


def compared(browser, hone, model, folder, shots):
    """The page of `hone compare --html`, with runtimes that fake_runtimes.py plays; one model's name
    would be a tag."""
    here, runner = os.path.dirname(os.path.abspath(__file__)), os.environ.get("HONE_RUNNER", "").split()
    page, odd, answer = os.path.join(folder, "compare.html"), os.path.join(folder,
        "<img src=x onerror=failed()>.onnx"), os.path.join(folder, "answer")
    shutil.copyfile(model, odd)
    subprocess.run(runner + [hone, "run", model, "--save", answer], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(runner + [hone, "compare", model, odd, "--batch", "1", "--runs", "4", "--loads", "1",
                             "--threads", "1", "--with", "ort,openvino,tvm", "--python",
                             os.path.join(here, "fake_runtimes.py"), "--html", page, "--json"], check=True,
                             stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, env={**os.environ, "HONE_FAKE_ANSWER": answer})
    browser.open("file://" + page)
    for what, text, good in [("cards", "document.querySelectorAll('.model').length", 2),
                             ("dots", "document.querySelectorAll('.dot').length", 2),
                             ("charts", "document.querySelectorAll('.charts svg').length", 8),
                             ("bars of memory", "document.querySelectorAll('.charts div:nth-child(3) "
                                                ".bar').length", 12),
                             ("charts that lack a runtime",
                              "[...document.querySelectorAll('.charts div:not(:last-child)')].filter(d => "
                              "!['Hone', 'ONNX Runtime', 'OpenVINO'].every(n => "
                              "d.textContent.includes(n))).length", 0),
                             ("tags in a name", "document.querySelectorAll('img').length", 0),
                             ("wrong answers", "document.querySelectorAll('.model td.bad').length", 2),
                             ("charts outside the page", "[...document.querySelectorAll('svg *')].filter(e "
                                                         "=> e.getBoundingClientRect().right > "
                                                         "innerWidth).length", 0),
                             ("no numbers in charts",
                              "document.getElementById('all').innerHTML.includes('NaN')", False),
                             ("the runtime that cannot", "document.body.textContent.includes('there is no "
                                                         "such op')", True)]:
        got = browser.js(text)
        want("comparison: " + what, got, got == good)
    if shots:
        browser.shot(f"{shots}/compare-light.png")
    browser.js(
        "document.getElementById('theme').click(); document.documentElement.dataset.theme === 'dark' || "
        "document.getElementById('theme').click()")
    want("comparison: dark", browser.js("getComputedStyle(document.body).backgroundColor"),
         browser.js("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 28)")
    if shots:
        browser.shot(f"{shots}/compare-dark.png")
    quiet(browser)


def quantized(browser, hone, model, folder, shots):
    """The page of `hone quantize --report`: pictures, a row that opens, and a node whose name would be a
    tag."""
    odd, page = os.path.join(folder, "odd.onnx"), os.path.join(folder, "quantize.html")
    letters = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(model))), "characters")
    with open(os.path.join(letters, "model.onnx"), "rb") as f:
        data = f.read()
    with open(odd, "wb") as f:  # a name of the same length
        f.write(data.replace(b"node_conv2d_1", b"</script><b>x"))
    subprocess.run(
        os.environ.get("HONE_RUNNER", "").split()
        + [
            hone,
            "quantize",
            odd,
            "--data",
            os.path.join(letters, "h.png"),
            "--data",
            os.path.join(letters, "o.png"),
            "--target",
            "size",
            "-o",
            os.path.join(folder, "q.onnx"),
            "--report",
            page,
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    browser.open("file://" + page)
    n = browser.js("layers.length")
    for what, text, good in [
        ("layers", "document.querySelectorAll('tr.layer').length", n),
        ("points", "document.querySelectorAll('.dot').length", browser.js("2 * r.mixtures.length")),
        ("layer by layer", "document.querySelectorAll('.layer-dot').length", 2 * n),
        ("histograms", "document.querySelectorAll('tr.layer .bars').length", n),
        (
            "pictures outside the page",
            "[...document.querySelectorAll('svg *')]"
            ".filter(e => e.getBoundingClientRect().right > innerWidth).length",
            0,
        ),
        ("no numbers", "/NaN|undefined|Infinity/.test(document.getElementById('all').innerHTML)", False),
        ("tags in a name", "document.querySelectorAll('td b').length", 0),
        ("the odd name", "document.body.innerText.includes('</script><b>x')", b"node_conv2d_1" in data),
        (
            "a row that opens",
            "document.querySelector('tr.layer').click(), document.querySelectorAll('tr.more .wide').length",
            1,
        ),
    ]:
        got = browser.js(text)
        want("quantization: " + what, got, got == good)
    if shots:
        browser.shot(f"{shots}/quantize-light.png")
    quiet(browser)


def write(hone, model, page):
    subprocess.run(os.environ.get("HONE_RUNNER", "").split() + [hone, "inspect", model, "--html", page],
                   check=True, stdout=subprocess.DEVNULL)


def main():
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    hone, model = sys.argv[1:3]
    shots = sys.argv[4] if len(sys.argv) > 4 and sys.argv[3] == "--shots" else None
    path = next((p for p in map(shutil.which, BROWSERS) if p), None)
    if not path:
        print("skipped: no Chromium on this machine")
        raise SystemExit(77)
    # a browser may still be writing its profile
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        page = os.path.join(folder, "page.html")
        write(hone, model, page)
        browser = Browser(path, os.path.join(folder, "profile"))
        try:
            nodes = look(browser, "file://" + page, shots,
                         os.path.basename(os.path.dirname(os.path.abspath(model))))
            narrow(browser, "file://" + page, shots)
            hostile(browser, hone, model, folder)
            compared(browser, hone, model, folder, shots)
            quantized(browser, hone, model, folder, shots)
        finally:
            browser.end()
    for f in failed:
        print(f)
    print(f"{nodes} nodes, {len(failed)} failed")
    raise SystemExit(1 if failed else 0)


main()
